/** Credentials as frameworks read them. A request that a framework accepts must never count as a request without a credential. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { createMatcher } from '../../../support/create-matcher.ts'
import { isLong } from '../../../support/long.ts'

const SECRET = 'a secret of at least 32 bytes, or so it says'
const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
function tokenOf(tenant: string) {
  const signed = `${b64({ alg: 'HS256' })}.${b64({ tenant })}`
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`
}
const TOKEN = tokenOf('acme')
const OTHER = tokenOf('globex')
const tenants = new Map([
  [TOKEN, 'acme'],
  [OTHER, 'globex'],
])

type Reader = (field: string) => string | undefined

/** How frameworks find the bearer token in an `Authorization` header, according to their source or documentation. */
const bearerReaders: Record<string, Reader> = {
  // /(\S+)\s+(\S+)/, case-insensitive scheme
  'passport-jwt': (field) => {
    const [, scheme, token] = /(\S+)\s+(\S+)/.exec(field) ?? []
    return scheme?.toLowerCase() === 'bearer' ? token : undefined
  },
  // auth.split(), two words
  'Django REST framework': (field) => {
    const words = pythonWords(field)
    return words.length === 2 && words[0]!.toLowerCase() === 'bearer' ? words[1] : undefined
  },
  // split(" "), two words, /^Bearer$/i
  'express-jwt': (field) => {
    const words = field.split(' ')
    return words.length === 2 && /^Bearer$/i.test(words[0]!) ? words[1] : undefined
  },
  // re.split(r",\s*"), the only part whose first word is the scheme
  'Flask-JWT-Extended': (field) => {
    const parts = field.split(/,\s*/).map(pythonWords)
    const fitting = parts.filter(([scheme]) => scheme === 'Bearer')
    return fitting.length === 1 && fitting[0]!.length === 2 ? fitting[0]![1] : undefined
  },
  // ^Bearer (?<token>[a-zA-Z0-9-._~+/]+=*)$, case-insensitive
  'Spring Security': (field) => /^Bearer ([a-zA-Z0-9\-._~+/]+=*)$/i.exec(field)?.[1],
  // the text after the last "Bearer ", up to a comma
  Laravel: (field) => {
    const at = field.toLowerCase().lastIndexOf('bearer ')
    return at < 0 ? undefined : field.slice(at + 7).split(',')[0]
  },
  // /^(Token|Bearer)\s+/ removed, split at /(?:,|;|\t)\s*/, the first part with an optional token="…"
  'Rails (http_token)': (field) => {
    if (!/^Bearer\s+/.test(field)) return undefined
    const first = field.replace(/^Bearer\s+/, '').split(/(?:,|;|\t)\s*/)[0]!
    return first.replace(/^token=/, '').replace(/^"+|"+$/g, '')
  },
}

const pythonWords = (text: string) => text.split(/[\s\x85]+/).filter((word) => word !== '')

/** How frameworks find the cookie `session` in a `Cookie` header. */
const cookieReaders: Record<string, Reader> = {
  // Python's http.cookies (Django, old Flask): white space separates too, quoted values are unquoted, the last cookie counts.
  'http.cookies': (field) => {
    const pattern =
      /\s*([\w!#%&'~`><@,:/$*+\-.^|)(?}{]+?)\s*(?:\s*=\s*("(?:[^\\"]|\\.)*"|[\w!#%&'~`><@,:/$*+\-.^|)(?}{=[\]]*))?\s*(?:\s+|;|$)/gy
    let found: string | undefined
    for (const [, key, value] of field.matchAll(pattern)) {
      if (key === 'session' && value !== undefined) found = unquote(value)
    }
    return found
  },
  // The npm package cookie before 1.0 (Express): the first cookie counts, quotes around a value are removed.
  'cookie 0.7': (field) => {
    for (const pair of field.split(';')) {
      const at = pair.indexOf('=')
      if (at < 0 || pair.slice(0, at).trim() !== 'session') continue
      return pair
        .slice(at + 1)
        .trim()
        .replace(/^"(.*)"$/, '$1')
    }
    return undefined
  },
  // Go's net/http: quotes are removed, and Request.Cookie returns the first value.
  'net/http': (field) => {
    for (const pair of field.split(';')) {
      const [key, ...value] = pair.trim().split('=')
      const text = value.join('=')
      if (key !== 'session' || /[^\x20-\x7e]|[;\\]/.test(text)) continue
      const bare = text.replace(/^"(.*)"$/, '$1')
      if (!bare.includes('"')) return bare
    }
    return undefined
  },
  // Perl's CGI::Cookie and RFC 2109: a comma separates too.
  'CGI::Cookie': (field) => {
    for (const pair of field.split(/[;,] ?/)) {
      const [key, ...value] = pair.trim().split('=')
      if (key === 'session') return value.join('=')
    }
    return undefined
  },
}

/** http.cookies._unquote */
function unquote(value: string): string {
  if (!/^".*"$/.test(value)) return value
  return value
    .slice(1, -1)
    .replace(/\\(?:([0-3][0-7][0-7])|(.))/g, (_, octal, other) =>
      octal ? String.fromCharCode(Number.parseInt(octal, 8)) : other,
    )
}

const describeWith = (from?: string) =>
  createMatcher({
    use: [jwt({ secret: 'JWT', ...(from && { from: from as 'bearer' }) })],
    policies: [{ name: 'a', limit: 5, window: '1m', key: 'jwt:tenant', onMissingKey: 'skip' }],
  })

/** The quotas that count the request: `acme`, `shared`, or none. */
async function charged(describeRequest: ReturnType<typeof createMatcher>, headers: HeadersInit) {
  const { policies } = await describeRequest('/', { headers }, { env: { JWT: SECRET } })
  return policies.map(({ partitionKey }) => partitionKey[0]![1] ?? 'shared')
}

const bearer = describeWith()
const cookie = describeWith('cookie:session')

test.each([
  [{ Authorization: `Bearer ${TOKEN}` }, ['acme'], bearer],
  [{ Authorization: `Bearer ${TOKEN}, Bearer ${TOKEN}` }, ['acme'], bearer],
  [{ Authorization: `Bearer ${OTHER} Bearer ${TOKEN}` }, ['shared'], bearer],
  [{ Authorization: `Bearer ${TOKEN}x` }, ['shared'], bearer],
  [{ Authorization: `Bearer ${TOKEN.slice(0, -3)}` }, ['shared'], bearer],
  [{ Authorization: 'Bearer a.b.c' }, ['shared'], bearer],
  [{ Authorization: 'Bearer a.b.c.d.e' }, ['shared'], bearer],
  [{ Authorization: `Token ${TOKEN}` }, ['shared'], bearer],
  [{}, [], bearer],
  [{ Authorization: 'Basic YTpi' }, [], bearer],
  [{ Authorization: 'Bearer an-opaque-token' }, [], bearer],
  [{ Authorization: 'Bearer undefined' }, [], bearer],
  [{ Cookie: `session=${TOKEN}` }, [], bearer],
  [{ Cookie: `session="${TOKEN}"` }, ['acme'], cookie],
  [{ Cookie: `session=${TOKEN}; session=x` }, ['shared'], cookie],
  [{ Cookie: 'session=nonsense' }, ['shared'], cookie],
  [{ Cookie: 'a=b' }, [], cookie],
  [{ Cookie: 'session=' }, [], cookie],
])('The credentials %j count in the quotas %j.', async (headers, quotas, describeRequest) => {
  expect(await charged(describeRequest, headers as HeadersInit)).toEqual(quotas)
})

describe('a token that a framework finds', () => {
  const readings = (readers: Record<string, Reader>, field: string) =>
    Object.entries(readers).flatMap(([name, read]) => {
      const tenant = tenants.get(read(field) ?? '')
      return tenant ? [{ name, tenant }] : []
    })

  /** Compares each framework with the quotas that Sluice charges. Returns the frameworks that found a token. */
  async function check(
    readers: Record<string, Reader>,
    pieces: string[],
    chargedFor: (field: string) => Promise<string[]>,
  ) {
    const seen = new Set<string>()
    const fields = fc
      .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 8 })
      .map((parts) => parts.join('').trim())
    await fc.assert(
      fc.asyncProperty(fields, async (field) => {
        const found = readings(readers, field)
        fc.pre(found.length > 0)
        const charged = await chargedFor(field)
        for (const { name, tenant } of found) {
          seen.add(name)
          expect([[tenant], ['shared']], `${name} reads ${field}`).toContainEqual(charged)
        }
      }),
      { numRuns: isLong ? 500 : 150, maxSkipsPerRun: 1000 },
    )
    return seen
  }

  test('A token that a framework finds in an Authorization header counts for its tenant or in the shared quota.', async () => {
    const words = ['Bearer', 'Bearer ', 'bearer ', 'Basic ', 'token=', 'x', 'a.b.c']
    const pieces = [TOKEN, OTHER, ...words, ' ', '\t', '\x85', ',', ';', '"', '=']
    const seen = await check(bearerReaders, pieces, (field) =>
      charged(bearer, { Authorization: field }),
    )
    expect(seen).toEqual(new Set(Object.keys(bearerReaders)))
  })

  test('A token that a framework finds in a Cookie header counts for its tenant or in the shared quota.', async () => {
    const words = ['session=', 'session =', 'a=b', 'a="', 'x']
    const pieces = [TOKEN, `session=${TOKEN}`, `session="${TOKEN}"`, `session=${OTHER}`, ...words]
    const seen = await check(
      cookieReaders,
      [...pieces, ' ', '\t', ',', ';', '; ', '"', '=', '\\'],
      (field) => charged(cookie, { Cookie: field }),
    )
    expect(seen).toEqual(new Set(Object.keys(cookieReaders)))
  })
})
