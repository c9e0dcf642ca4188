import type { RequestDescription } from './schema.ts'

/** The field of a forward-auth call that is missing, or cannot be right. */
export interface Untold {
  untold: string
}

/** Fields that tell of the request, and are no part of it. */
const TELLING = /^x-forwarded-(for|method|uri|host|proto)$|^host$|^content-length$/

/** What Envoy puts before a client's path. */
export const ENVOY = '/_sluice/v1/auth/envoy'

/** The request that a reverse proxy tells of in `X-Forwarded-Method`, `-Uri`, `-Host`, `-Proto` and `-For`. */
export function byFields({ headers, url }: Request): RequestDescription | Untold {
  const method = headers.get('x-forwarded-method')
  if (!method) return { untold: 'X-Forwarded-Method' }
  const uri = headers.get('x-forwarded-uri')
  // No request has a fragment: what comes after it would be path to some origins, and nothing to us.
  if (!uri || uri.includes('#')) return { untold: 'X-Forwarded-Uri' }
  return described(method, hostOf(headers, url), pathOf(uri), headers)
}

/** The request whose path and query stand behind {@link ENVOY}, as `ext_authz` asks: the method is the call's own. */
export function byPath({ method, headers, url }: Request): RequestDescription | Untold {
  const { pathname, search } = new URL(url)
  // Of another spelling of the prefix nobody could say where it ends.
  if (pathname !== ENVOY && !pathname.startsWith(`${ENVOY}/`)) return { untold: 'The path' }
  const path = `${pathname.slice(ENVOY.length) || '/'}${search}`
  return described(method, hostOf(headers, url), path, headers)
}

function described(
  method: string,
  host: string,
  path: string,
  headers: Headers,
): RequestDescription | Untold {
  // Nothing in it may end the host before the path begins.
  if (!/^[^\s/?#@\\]+$/.test(host)) return { untold: 'X-Forwarded-Host' }
  const scheme = headers.get('x-forwarded-proto') === 'http' ? 'http' : 'https'
  const clients = [...headers].filter(([name]) => !TELLING.test(name))
  const ip = clientOf(headers)
  return {
    method,
    url: `${scheme}://${host}${path}`,
    headers: Object.fromEntries(clients),
    ...(ip !== undefined && { ip }),
  }
}

/** The last entry of a list, which whoever asks us has written. */
const lastOf = (field: string) => field.split(',').at(-1)!.trim()

const hostOf = (headers: Headers, url: string) =>
  lastOf(headers.get('x-forwarded-host') ?? new URL(url).host)

/** `*`, and whatever else is no path, is the root; of a whole URL it is what follows the host. */
function pathOf(uri: string): string {
  if (uri.startsWith('/')) return uri
  const { pathname, search } = URL.canParse(uri) ? new URL(uri) : { pathname: '/', search: '' }
  return `${pathname.startsWith('/') ? pathname : '/'}${search}`
}

/**
 * The client, as the proxy saw it: the last entry of `X-Forwarded-For`, before which anybody may have written anything. Cloudflare
 * appends where the call came from, the proxy itself; then it is the entry before.
 */
function clientOf(headers: Headers): string | undefined {
  const entries = (headers.get('x-forwarded-for') ?? '').split(',').map((text) => text.trim())
  const last = entries.pop()
  const before = entries.at(-1)
  return before && last === headers.get('cf-connecting-ip') ? before : last || undefined
}
