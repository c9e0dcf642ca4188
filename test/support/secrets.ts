import { createHash } from 'node:crypto'
import { script } from '../../cli/replay/decide/script-parts.ts'
import { hashedSubjects } from '../../src/core/decide/subject.ts'

/** Secrets that tests plant in requests and variables. They must not appear in any output. */
export const secrets = {
  token: 'tok3n-AYNgASQgNmY5ZWFlM2',
  secret: 's3cret-of-the-hmac-9f27',
  ipv4: '203.0.113.199',
  ipv6: '2001:db8:5ec2:e7:a1b2:c3d4:e5f6:789a',
  apiKey: 'ak_live_51Hq8ZxPlanted',
  email: 'jane.planted+key@example.org',
  cookie: 'sid-0b5e7c9dPlantedCookie',
  path: 'reset-password-Planted7f3a',
}

/** The header fields with the secrets of a client. */
export const planted = {
  authorization: `Bearer ${secrets.apiKey}`,
  cookie: `session=${secrets.cookie}`,
  'x-api-key': secrets.apiKey,
  'x-email': secrets.email,
}

/** Other spellings of the IPv6 address. */
const spellings = {
  'ipv6 network': '2001:db8:5ec2:e7::',
  'ipv6 network, whole': '2001:0db8:5ec2:00e7',
  'ipv6, whole': '2001:0db8:5ec2:00e7:a1b2:c3d4:e5f6:789a',
}

/** Long lines of the script. Short lines also appear in other texts. */
const scriptLines = Object.fromEntries(
  script
    .split('\n')
    .filter((line) => line.length >= 24)
    .map((line, index) => [`script, line ${index}`, line]),
)

/** All texts that must not leak, by name: the planted secrets, and values that Sluice derives from them. */
export async function everySecret(): Promise<Record<string, string>> {
  const name = hashedSubjects(secrets.secret)
  const subjects = {
    'subject of ipv4': await name([['ip', secrets.ipv4]]),
    'subject of ipv6': await name([['ip', spellings['ipv6 network']]]),
    'subject of the e-mail': await name([['header:x-email', secrets.email]]),
    'subject of the API key': await name([['header:x-api-key', secrets.apiKey]]),
  }
  return {
    ...secrets,
    ...spellings,
    ...subjects,
    'key prefix': 'sluice:1:',
    'script flag': 'allow-key-locking',
    'script hash': createHash('sha1').update(script).digest('hex'),
    ...scriptLines,
  }
}

/** Names the secrets that a text contains: plain, or in base64, hex or URL encoding. */
export function secretsIn(text: string, all: Record<string, string>): string[] {
  const lower = text.toLowerCase()
  return Object.entries(all).flatMap(([name, secret]) =>
    Object.entries(encodings(secret))
      .filter(([, forms]) => forms.some((form) => lower.includes(form.toLowerCase())))
      .map(([encoding]) => `${name} (${encoding})`),
  )
}

function encodings(secret: string): Record<string, string[]> {
  const base64 = [0, 1, 2].map((offset) => base64At(secret, offset))
  const hex = Buffer.from(secret).toString('hex')
  return {
    plain: [secret, JSON.stringify(secret).slice(1, -1)],
    base64: [...base64, ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))],
    hex: [hex],
    URL: [encodeURIComponent(secret), hex.replace(/../g, '%$&')].filter((form) => form !== secret),
  }
}

/** The part of the base64 text that does not depend on the surrounding bytes, after `offset` other bytes. */
function base64At(secret: string, offset: number): string {
  const encoded = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]).toString('base64')
  const first = Math.ceil((offset * 8) / 6)
  const last = Math.floor(((offset + Buffer.byteLength(secret)) * 8) / 6)
  return encoded.slice(first, last)
}
