/** Makes a request that a policy applies to. */
import { formatAddress, parseAddress } from '../../src/core/base/ip.ts'
import { canonical } from '../../src/core/base/part.ts'
import type { Config, Policy } from '../../src/core/config/parse.ts'
import type { Condition } from '../../src/core/config/schema/condition.ts'
import type { KeyPart } from '../../src/core/config/schema/key.ts'
import { featuresOf, stagesOf } from '../../src/core/feature.ts'
import { compileMatcher, type Match } from '../../src/core/program/match.ts'
import { RequestView } from '../../src/core/request/view.ts'
import { defaults } from '../../src/features/defaults.ts'
import { withoutFunctions } from '../explain/explain.ts'
import type { SampleRequest } from './client.ts'

/** An address for documentation (RFC 5737). The deployment sees the real one. */
const ADDRESS = '192.0.2.1'

/** Matches requests as the deployment should. */
export function createLocalMatcher(parsed: Config, url: string, headers: Record<string, string>) {
  const config = withoutFunctions(parsed)
  const stages = stagesOf({ config, log: () => {} }, featuresOf(config, defaults()))
  const match = compileMatcher(config, () => {}, stages)
  const runtime = { env: process.env, context: undefined, waitUntil: () => {} }
  return async (sample: SampleRequest): Promise<Match[]> => {
    // A path of the address is that of a proxy, which removes it.
    const request = new Request(`${new URL(url).origin}${sample.path}`, {
      method: sample.method,
      headers: { ...sample.headers, ...headers },
      body: sample.body ?? null,
    })
    const { policies } = await match(
      new RequestView(request, runtime, config, () => parseAddress(ADDRESS)),
    )
    return policies
  }
}

export type LocalMatcher = ReturnType<typeof createLocalMatcher>

/** The quota that a policy counts a request in, without the values that only the deployment knows. */
export const quotaOf = (matches: Match[], { name }: Policy): string | undefined => {
  const own = matches.filter(({ terms }) => terms.name === name)
  return own.length === 0
    ? undefined
    : own
        .map(({ partitionKey }) => canonical(partitionKey))
        .sort()
        .join()
}

/** A route that the app has. */
export interface KnownRoute {
  /** Defaults to those of the policy. */
  method?: string | undefined
  path: string
}

/** The routes that a configuration names in `expect`. */
export const routesOf = (expected: { request: Condition }[]): KnownRoute[] =>
  expected.flatMap(({ request: { path = [], method = [undefined] } }) =>
    path
      .filter(isExact)
      .flatMap((one) =>
        method.filter((name) => name !== 'HEAD').map((name) => ({ method: name, path: one })),
      ),
  )

const isExact = (pattern: string) => !/:|\*$/.test(pattern)

/** A request, or why there is none. */
export type Sample =
  | {
      request: SampleRequest
      match: Match | undefined
      /** True if the policy applies to no known route, and does not name the path. */
      madeUp: boolean
      /** The requests to other known routes that the policy applies to. */
      others: SampleRequest[]
    }
  | { why: string }

/** The most candidates that are compared. */
const MAX_CANDIDATES = 24

/** Finds a request that a policy applies to, with as few other policies as possible. */
export async function sampleFor(
  policy: Policy,
  config: Config,
  host: string,
  given: Record<string, string>,
  match: LocalMatcher,
  known: KnownRoute[] = [],
): Promise<Sample> {
  const missing = missingFor(policy, config, host, given)
  if (missing) return { why: missing }
  const isOwn = ({ path }: SampleRequest) => policy.match.path?.includes(path.replace(/\?.*/s, ''))
  const routes = known.flatMap((route) => candidates(policy, config, given, route))
  const all = await best(policy, [...routes, ...candidates(policy, config, given)], match)
  const [{ request, match: own }] = all as [(typeof all)[number]]
  const applied = all.flatMap((one) =>
    one.match && routes.includes(one.request) ? one.request : [],
  )
  const others = applied.filter((one) => one !== request)
  return { request, match: own, others, madeUp: applied.length === 0 && !isOwn(request) }
}

/** Some requests with their matches, those with the fewest other policies first. */
async function best(policy: Policy, requests: SampleRequest[], match: LocalMatcher) {
  const all = []
  for (const request of requests.slice(0, MAX_CANDIDATES)) {
    const matches = await match(request)
    const own = matches.find((one) => one.terms.name === policy.name)
    const others = own ? matches.length - 1 : Number.POSITIVE_INFINITY
    all.push({ request, match: own, beside: others })
  }
  return all.sort((one, other) => one.beside - other.beside)
}

const isHost = (name: string, host: string) =>
  name.startsWith('*.') ? host.endsWith(name.slice(1)) : host === name

/** The parts of a request that a policy needs: those of the key, and the value that it counts. */
const partsOf = ({ key, distinct }: Policy) => (distinct ? [...key, distinct] : key)

/** What the policy needs and a request cannot be given. */
function missingFor(
  policy: Policy,
  { apiKeys }: Config,
  host: string,
  given: Record<string, string>,
): string | undefined {
  const { match } = policy
  const key = partsOf(policy)
  if (match.host && !match.host.some((one) => isHost(one, host))) {
    return `it applies to the host ${match.host.join(' or ')}: run sluice verify with that address`
  }
  const names = Object.keys(given).map((name) => name.toLowerCase())
  if (
    (match.jwt || key.some(({ source }) => source === 'jwt')) &&
    !names.includes('authorization') &&
    !names.includes('cookie')
  ) {
    return "it needs a token: add --header 'Authorization: Bearer …'"
  }
  const hasKey = apiKeys.from.some(({ source, name }) =>
    names.includes(source === 'header' ? name : source === 'cookie' ? 'cookie' : 'authorization'),
  )
  const needsKey = match.apiKey || (key.some(({ source }) => source === 'api-key') && apiKeys.known)
  if (needsKey && !hasKey) {
    const [{ source, name }] = apiKeys.from as [{ source: string; name: string }]
    const field = source === 'header' ? `${name}: …` : 'Authorization: Bearer …'
    return `it needs a known API key: add --header '${field}'`
  }
  return undefined
}

function candidates(
  policy: Policy,
  { apiKeys }: Config,
  given: Record<string, string>,
  route?: KnownRoute,
): SampleRequest[] {
  const { match } = policy
  const key = partsOf(policy)
  const paths = route ? [route.path] : (match.path?.map(pathOf) ?? ['/', MADE_UP])
  const usual = route ? ['GET'] : ['GET', 'POST']
  const methods = route?.method
    ? [route.method]
    : (match.method?.filter((one) => one !== 'HEAD') ?? usual)
  const body = bodyFor(match, key)
  const headers = headersFor(match, key, apiKeys.from)
  if (body !== undefined) headers['content-type'] = 'application/json'
  const query = queryFor(match, key)
  const known = new Set(Object.keys(given).map((name) => name.toLowerCase()))
  const own = Object.fromEntries(Object.entries(headers).filter(([name]) => !known.has(name)))
  return (methods.length > 0 ? methods : ['HEAD']).flatMap((method) => {
    const mayHaveBody = method !== 'GET' && method !== 'HEAD'
    if (body !== undefined && !mayHaveBody) return []
    return paths.map((path) => ({ method, path: withQuery(path, query), headers: own, body }))
  })
}

/** A path that the app hardly has. */
const MADE_UP = '/sluice-verify'

/** `/users/sluice-verify` for `/users/:id`, `/api/sluice-verify` for `/api/*`. */
const pathOf = (pattern: string) => pattern.replace(/:\w+|\*$/g, 'sluice-verify')

/** A value that a pattern of a condition matches. */
const textFor = (values: string[] | undefined) =>
  (values?.[0] ?? '1').replace(/^\*|\*$/g, '') || '1'

const parts = <Source extends KeyPart['source']>(key: KeyPart[], wanted: Source) =>
  key.flatMap((part) => (part.source === wanted ? [part as { name: string }] : []))

function headersFor({ header = [] }: Condition, key: KeyPart[], from: Config['apiKeys']['from']) {
  const headers: Record<string, string> = {}
  for (const { name } of parts(key, 'header')) headers[name] = 'sluice-verify'
  for (const { name, values } of header) headers[name] = textFor(values)
  const cookies = parts(key, 'cookie').map(({ name }) => `${name}=sluice-verify`)
  if (key.some(({ source }) => source === 'api-key')) {
    const [{ source, name }] = from as [(typeof from)[number]]
    if (source === 'header') headers[name] = 'sluice-verify'
    if (source === 'bearer') headers.authorization = 'Bearer sluice-verify'
    if (source === 'cookie') cookies.push(`${name}=sluice-verify`)
  }
  if (cookies.length > 0) headers.cookie = cookies.join('; ')
  return headers
}

function queryFor({ query = [] }: Condition, key: KeyPart[]) {
  const search = new URLSearchParams()
  for (const { name } of parts(key, 'query')) search.set(name, 'sluice-verify')
  for (const { name, values } of query) search.set(name, textFor(values))
  return search.size > 0 ? `?${search}` : ''
}

const withQuery = (path: string, query: string) =>
  path.includes('?') ? path + query.replace('?', '&') : path + query

function bodyFor({ body = [] }: Condition, key: KeyPart[]): string | undefined {
  const fields = [
    ...parts(key, 'body').map(({ name }) => [name, 'sluice-verify'] as const),
    ...body.map(({ name, values }) => [name, textFor(values)] as const),
  ]
  if (fields.length === 0) return undefined
  const json: Record<string, unknown> = {}
  for (const [name, value] of fields) {
    const steps = name.split('.')
    const last = steps.pop()!
    let place = json
    for (const step of steps) {
      place[step] ??= {}
      place = Object(place[step])
    }
    place[last] = value
  }
  return JSON.stringify(json)
}

/** Other spellings of a path. Which of them are the same request is for the matcher to say. */
export function spellings(path: string): string[] {
  const isRoot = /^\/(\?|$)/.test(path)
  return [...spelled(path), ...(isRoot ? spelled(path.replace('/', MADE_UP)) : [])]
}

function spelled(path: string): string[] {
  const [, pathname = path, query = ''] = /^([^?]*)(.*)$/s.exec(path) ?? []
  const letter = /[a-z]/.exec(pathname)
  const encoded = letter && pathname.replace(letter[0], `%${letter[0].charCodeAt(0).toString(16)}`)
  return [`/${pathname.toUpperCase().replace(/^\/$/, '')}/`, encoded, `${pathname};x=1`]
    .filter((one) => typeof one === 'string' && one !== pathname)
    .map((one) => one + query)
}

/** The same text for the same address. */
export const sameAddress = (text: string): string => {
  const address = parseAddress(text.trim().replace(/^"|"$/g, ''))
  return address ? formatAddress(address) : text.trim()
}
