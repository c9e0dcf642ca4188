import type { Config } from '../config/parse.ts'
import { namesOf } from '../config/schema/headers.ts'

const ALLOW_ORIGIN = 'Access-Control-Allow-Origin'
const ALLOW_CREDENTIALS = 'Access-Control-Allow-Credentials'
const EXPOSE = 'Access-Control-Expose-Headers'

/**
 * Lets pages of other origins read what the limiter says (the Fetch standard's CORS protocol). On a response that has
 * `Access-Control-Allow-Origin`, the limiter's fields and `Retry-After` are exposed. An answer of our own is given that field where
 * `config.cors` names the page's origin; `Vary` goes with it, and since such answers are `no-store` it need not stand on the others.
 *
 * Preflights (`OPTIONS` with `Access-Control-Request-Method`) are not answered here: they are requests like any other, counted and
 * passed on, and what an origin allows is its own matter. One that is refused fails, and the page's request with it.
 * @param origin the request's `Origin`
 * @param options.own whether the answer is the limiter's or the gateway's own (429, 503, 403; 502, 504). Defaults to false
 * @returns the same response where no page of another origin may read it
 */
export function withCors(
  response: Response,
  origin: string | undefined,
  config: Pick<Config, 'cors' | 'headers' | 'degradedHeader'>,
  { own = false } = {},
): Response {
  const allow = own && !response.headers.has(ALLOW_ORIGIN) ? allowed(origin, config) : undefined
  if (allow === undefined && !response.headers.has(ALLOW_ORIGIN)) return response
  const copy = new Response(response.body, response) // what fetch returns cannot be changed
  const { headers } = copy
  if (allow !== undefined) {
    headers.set(ALLOW_ORIGIN, allow)
    if (config.cors!.credentials) headers.set(ALLOW_CREDENTIALS, 'true')
    if (allow !== '*') add(headers, 'Vary', ['Origin'], '*')
  }
  // With credentials "*" is the name of a field and no more.
  const everything = headers.get(ALLOW_CREDENTIALS) === 'true' ? undefined : '*'
  add(headers, EXPOSE, fieldsOf(config), everything)
  return copy
}

/** What `Access-Control-Allow-Origin` says to a page; nothing where it may not read. */
function allowed(origin: string | undefined, { cors }: Pick<Config, 'cors'>): string | undefined {
  if (!cors || origin === undefined) return undefined
  if (cors.origins.includes('*')) return '*'
  return cors.origins.includes(origin) ? origin : undefined
}

const fieldsOf = ({ headers, degradedHeader }: Pick<Config, 'headers' | 'degradedHeader'>) => [
  ...headers.flatMap(namesOf),
  'Retry-After',
  ...(degradedHeader ? ['Sluice-Degraded'] : []),
]

/**
 * Adds the names that a list lacks; none where `everything` is in it. A list that is malformed tells a browser nothing, and would
 * swallow ours: ours replaces it.
 */
function add(headers: Headers, field: string, names: string[], everything: string | undefined) {
  const list = (headers.get(field) ?? '').split(',').map((name) => name.trim())
  const wellFormed = list.every((name) => /^[\w!#$%&'*+.^`|~-]*$/.test(name))
  const present = wellFormed ? list.filter((name) => name !== '') : []
  if (everything !== undefined && present.includes(everything)) return
  const known = new Set(present.map((name) => name.toLowerCase()))
  const lacking = names.filter((name) => !known.has(name.toLowerCase()))
  if (lacking.length > 0) headers.set(field, [...present, ...lacking].join(', '))
}
