import type { Config } from '../config/parse.ts'
import { withChanged } from './own-fields.ts'
import { setOf } from './ratelimit-fields/sets.ts'

const ALLOW_ORIGIN = 'Access-Control-Allow-Origin'
const ALLOW_CREDENTIALS = 'Access-Control-Allow-Credentials'
const EXPOSE = 'Access-Control-Expose-Headers'

/**
 * Lets pages of other origins read the limiter's fields (CORS protocol of the Fetch standard). Exposes these fields and `Retry-After` on each
 * response with `Access-Control-Allow-Origin`. Adds that field, with `Vary`, to responses of the limiter and the gateway if `config.cors` names
 * the origin of the page. Their other responses need no `Vary`, because all of them are `no-store`.
 *
 * Answers no preflights: they are counted and forwarded like other requests. If one is refused, the request of the page fails too.
 * @param page the `Origin` of the request, for a response of the limiter or the gateway (429, 503, 403; 502, 504). Defaults to none
 * @returns the same response, or a copy if it must change and is immutable
 */
export function withCors(
  response: Response,
  config: Pick<Config, 'cors' | 'headers'>,
  page?: string | null,
): Response {
  const isAllowed = response.headers.has(ALLOW_ORIGIN)
  const { origins = [] } = config.cors ?? {}
  const allow = page && !isAllowed ? ['*', page].find((one) => origins.includes(one)) : undefined
  if (allow === undefined && !isAllowed) return response
  return withChanged(response, (headers) => {
    if (allow !== undefined) {
      headers.set(ALLOW_ORIGIN, allow)
      if (config.cors!.credentials) headers.set(ALLOW_CREDENTIALS, 'true')
      if (allow !== '*') add(headers, 'Vary', ['Origin'], '*')
    }
    // With credentials, "*" is an ordinary field name and not a wildcard.
    const wildcard = headers.get(ALLOW_CREDENTIALS) === 'true' ? undefined : '*'
    const fields = config.headers.flatMap((set) => setOf(set).names)
    add(headers, EXPOSE, [...fields, 'Retry-After'], wildcard)
  })
}

/** Answers a preflight of an endpoint with the methods and fields that pages of another origin may send. `withCors` adds the allowed origin. */
export const preflight = (methods: string, fields: string): Response =>
  new Response(null, {
    status: 204,
    headers: { 'Access-Control-Allow-Methods': methods, 'Access-Control-Allow-Headers': fields },
  })

/** Adds names to a list, unless it contains `wildcard`. Replaces a malformed list, because a browser would ignore all of it. */
function add(headers: Headers, field: string, names: string[], wildcard: string | undefined) {
  const list = (headers.get(field) ?? '').split(',').map((name) => name.trim())
  const wellFormed = list.every((name) => /^[\w!#$%&'*+.^`|~-]*$/.test(name))
  const present = wellFormed ? list.filter((name) => name !== '') : []
  if (wildcard !== undefined && present.includes(wildcard)) return
  const known = new Set(present.map((name) => name.toLowerCase()))
  const missing = names.filter((name) => !known.has(name.toLowerCase()))
  if (missing.length > 0) headers.set(field, [...present, ...missing].join(', '))
}
