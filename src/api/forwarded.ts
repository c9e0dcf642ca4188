import { isAmbiguous } from '../core/base/ambiguous-target.ts'
import { HOST } from '../core/base/host.ts'
import type { RequestDescription } from './schema.ts'

/** A field of a forward-auth call that is missing or invalid. */
export interface InvalidField {
  invalidField: string
  /** True if the client caused it, and not the configuration of the proxy. */
  byClient?: true
}

/** Fields that belong to the forward-auth call, and not to the client's request. */
const CALL_FIELDS = /^x-forwarded-(for|method|uri|host|proto)$|^host$|^content-length$/

/** The prefix that Envoy puts before the client's path. */
export const ENVOY = '/_sluice/v1/auth/envoy'

/** Reads the client's request from `X-Forwarded-Method`, `-Uri`, `-Host`, `-Proto` and `-For`. */
export function fromFields({ headers, url }: Request): RequestDescription | InvalidField {
  const method = headers.get('x-forwarded-method')
  if (!method) return { invalidField: 'X-Forwarded-Method' }
  const uri = headers.get('x-forwarded-uri')
  if (!uri) return { invalidField: 'X-Forwarded-Uri' }
  // Policies would see another path than the origin.
  if (isAmbiguous(uri)) return { invalidField: 'X-Forwarded-Uri', byClient: true }
  return described(method, hostOf(headers, url), pathOf(uri), headers)
}

/** Reads the client's request from a call of Envoy's `ext_authz`: path and query follow {@link ENVOY}, and the method is that of the call. */
export function fromPath({ method, headers, url }: Request): RequestDescription | InvalidField {
  const { pathname, search } = new URL(url)
  // Only this exact spelling of the prefix has a known end.
  if (pathname !== ENVOY && !pathname.startsWith(`${ENVOY}/`)) return { invalidField: 'The path' }
  const path = `${pathname.slice(ENVOY.length) || '/'}${search}`
  return described(method, hostOf(headers, url), path, headers)
}

function described(
  method: string,
  host: string,
  path: string,
  headers: Headers,
): RequestDescription | InvalidField {
  if (!HOST.test(host)) return { invalidField: 'X-Forwarded-Host' }
  const scheme = headers.get('x-forwarded-proto') === 'http' ? 'http' : 'https'
  const clientFields = [...headers].filter(([name]) => !CALL_FIELDS.test(name))
  const ip = clientOf(headers)
  return {
    method,
    url: `${scheme}://${host}${path}`,
    headers: Object.fromEntries(clientFields),
    ...(ip !== undefined && { ip }),
  }
}

/** Returns the last entry of a list, which the calling proxy wrote. */
const lastOf = (field: string) => field.split(',').at(-1)!.trim()

const hostOf = (headers: Headers, url: string) =>
  lastOf(headers.get('x-forwarded-host') ?? new URL(url).host)

/** Returns path and query of a request target, which may be a URL. A target without a path, such as `*`, is the root. */
function pathOf(uri: string): string {
  if (uri.startsWith('/')) return uri
  const { pathname, search } = URL.canParse(uri) ? new URL(uri) : { pathname: '/', search: '' }
  return `${pathname.startsWith('/') ? pathname : '/'}${search}`
}

/**
 * Returns the client's address as the proxy saw it: the last entry of `X-Forwarded-For`, because clients can forge earlier entries.
 * Cloudflare may append the address of the proxy itself; then it is the entry before.
 */
function clientOf(headers: Headers): string | undefined {
  const entries = (headers.get('x-forwarded-for') ?? '').split(',').map((text) => text.trim())
  const last = entries.pop()
  const before = entries.at(-1)
  return before && last === headers.get('cf-connecting-ip') ? before : last || undefined
}
