/** One request of a client, and the requests beside it that conditions tell apart. */
import { formatAddress, networkRange } from '../../core/base/ip.ts'
import type { Config } from '../../core/config/parse.ts'
import type { Condition } from '../../core/config/schema/condition.ts'
import type { KeyPart } from '../../core/config/schema/key.ts'
import { labelOf } from '../../core/program/key.ts'
import { addressReader } from '../../core/request/client-address.ts'
import { normalizePath } from '../../core/request/path.ts'
import { RequestView } from '../../core/request/view.ts'

/** A request in full: it has nothing that is not here. */
export interface SampleRequest {
  method: string
  host: string
  path: string
  header: Record<string, string>
  query: Record<string, string>
  ip: string
  country?: string | undefined
  asn?: number | undefined
  ja4?: string | undefined
  score?: number | undefined
  /** The category of a verified bot; empty for another client. */
  bot?: string | undefined
  /** The labels of other key parts that have a value, such as `api-key`. */
  parts: readonly string[]
}

export const plainSample: SampleRequest = {
  method: 'GET',
  host: 'www.example.com',
  path: '/',
  header: {},
  query: {},
  ip: '203.0.113.7',
  parts: [],
}

const runtime = { env: {}, context: undefined, waitUntil: () => {} }
const readAddress = addressReader('cloudflare')

export function viewOf(sample: SampleRequest, config: Pick<Config, 'caseSensitivePaths'>) {
  const { method, host, path, header, query, ip, country, asn, ja4, score, bot, parts } = sample
  const parameters = new URLSearchParams(query).toString()
  const url = `https://${host}${path}${parameters && `?${parameters}`}`
  const verifiedBot = bot === undefined ? undefined : bot !== ''
  const botManagement = { ja4, score, verifiedBot }
  const cf = { country, asn, botManagement, verifiedBotCategory: bot }
  const headers = { ...header, 'cf-connecting-ip': ip }
  const request = Object.assign(new Request(url, { method, headers }), { cf })
  const has = (label: string) => parts.some((one) => one.split(':')[0] === label)
  return new RequestView(request, runtime, config, readAddress).with({
    jwt: has('jwt'),
    apiKey: has('api-key'),
  })
}

/** Sources of key parts that a sample has in a field of its own. */
const OWN = ['ip', 'method', 'host', 'path', 'path-parameter', 'country', 'asn', 'ja4', 'global']

export function hasPart(sample: SampleRequest, part: KeyPart): boolean {
  const { source } = part
  if (source === 'header' || source === 'query') return Boolean(sample[source][part.name])
  if (source === 'country' || source === 'asn' || source === 'ja4') return Boolean(sample[source])
  return OWN.includes(source) || sample.parts.includes(labelOf(part))
}

type SampleChange = (sample: SampleRequest) => SampleRequest

const changesTo = (values: { [Field in keyof SampleRequest]?: SampleRequest[Field][] }) =>
  Object.entries(values).flatMap(([field, all]) =>
    all.map(
      (value): SampleChange =>
        (sample) => ({ ...sample, [field]: value }),
    ),
  )

const withNamed =
  (field: 'header' | 'query', name: string, value: string | undefined): SampleChange =>
  (sample) => {
    const { [name]: _, ...others } = sample[field]
    return { ...sample, [field]: value === undefined ? others : { ...others, [name]: value } }
  }

const plain = (pattern: string) => pattern.replaceAll('*', '')

const pathOf = (pattern: string) =>
  normalizePath(pattern.replace(/\/\*$/, '/any').replace(/\/:(\w+)/g, '/$1'))

/** The Fetch API sends no request with another method. */
const isSendable = (method: string) => !/^(CONNECT|TRACE|TRACK)$/.test(method)

const isAscii = (text: string) => /^[ -~]*$/.test(text)

/** The requests that differ in one value from a sample, as far as a condition tells them apart. */
export function changesFor(condition: Condition): SampleChange[] {
  const { method = [], host = [], path = [], country = [], asn = [], ip = [], ja4 = [] } = condition
  const { header = [], query = [], verifiedBot, botScore, jwt, apiKey, not = [] } = condition
  const named = (field: 'header' | 'query', all: NonNullable<Condition['header']>) =>
    all.flatMap(({ name, values = [] }) => [
      withNamed(field, name, undefined),
      ...['other', ...values.map(plain).filter(isAscii)].map((value) =>
        withNamed(field, name, value),
      ),
    ])
  const bots = Array.isArray(verifiedBot) ? verifiedBot : ['Other']
  const { atLeast = 1, below = 100 } = botScore ?? {}
  return [
    ...changesTo({
      method: method.filter(isSendable),
      host: host.map((one) => one.replace(/^\*/, 'www')),
      path: path.map(pathOf),
      ...{ country, asn },
      ip: ip.flatMap((one) => networkRange(one)!).map(formatAddress),
      ja4: ja4.map(plain),
    }),
    ...named('header', header),
    ...named('query', query),
    ...changesTo({
      bot: verifiedBot === undefined ? [] : ['', ...bots],
      score: (botScore ? [atLeast, atLeast - 1, below - 1, below] : []).map((score) =>
        score > 0 && score < 100 ? score : undefined,
      ),
    }),
    ...(jwt === undefined ? [] : changesForLabel('jwt')),
    ...(apiKey === undefined ? [] : changesForLabel('api-key')),
    ...not.flatMap(changesFor),
  ]
}

/** The requests that differ in a key part from a sample: with it, and without it. */
export function changesForPart(part: KeyPart): SampleChange[] {
  if (part.source === 'header' || part.source === 'query') {
    const { source, name } = part
    return [undefined, 'some'].map((value) => withNamed(source, name, value))
  }
  return OWN.includes(part.source) ? [] : changesForLabel(labelOf(part))
}

const changesForLabel = (label: string): SampleChange[] => [
  (sample) => ({ ...sample, parts: sample.parts.filter((one) => one !== label) }),
  (sample) => ({ ...sample, parts: [...new Set([...sample.parts, label])] }),
]

/** Requests that no condition names. */
export const usualChanges: SampleChange[] = changesTo({
  method: ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'],
  path: ['/', '/any'],
  ip: ['203.0.113.7', '2001:db8::7'],
  host: ['www.example.com'],
  country: [undefined, 'US', 'NZ'],
  asn: [undefined, 64_496, 65_551],
  ...{ ja4: [undefined], score: [undefined], bot: [undefined] },
})

/** A sample in words: `POST /login with X-Plan: free, from 10.0.0.1`. */
export function describe(sample: SampleRequest, names: readonly string[]): string {
  const { method, host, path, header, query, ip, country, asn, bot, score, ja4, parts } = sample
  const parameters = new URLSearchParams(query).toString()
  const absent = names.filter((name) => header[name] === undefined)
  const extras = [
    ...Object.entries(header).map(([name, value]) => `with ${name}: ${value}`),
    ...parts.map((label) => (label === 'jwt' ? 'with a token' : `with a value for ${label}`)),
    ...absent.map((name) => `without ${name}`),
    ...(host === plainSample.host ? [] : [`to ${host}`]),
    ...(ip === plainSample.ip ? [] : [`from ${ip}`]),
    ...(country ? [`from ${country}`] : []),
    ...(asn ? [`from AS${asn}`] : []),
    ...(bot ? [`from a verified bot (${bot})`] : []),
    ...(score ? [`with the bot score ${score}`] : []),
    ...(ja4 ? [`with the JA4 ${ja4}`] : []),
  ]
  return [`${method} ${path}${parameters && `?${parameters}`}`, extras.join(', ')]
    .filter(Boolean)
    .join(' ')
}
