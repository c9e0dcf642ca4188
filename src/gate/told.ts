import type { RequestDescription } from '../schema/gate.ts'

/** The field of a forward-auth call that is missing, or cannot be right. */
export interface Untold {
  untold: string
}

/** Fields that tell of the request, and are no part of it. */
const TELLING = /^x-forwarded-(for|method|uri|host|proto)$|^host$|^content-length$/

/** The request that a reverse proxy tells of in `X-Forwarded-Method`, `-Uri`, `-Host`, `-Proto` and `-For`. */
export function byFields({ headers, url }: Request): RequestDescription | Untold {
  const method = headers.get('x-forwarded-method')
  const uri = headers.get('x-forwarded-uri')
  if (!method) return { untold: 'X-Forwarded-Method' }
  if (!uri) return { untold: 'X-Forwarded-Uri' }
  const host = headers.get('x-forwarded-host') ?? new URL(url).host
  // Whatever else a URL has before its path: it must not become part of it.
  if (!/^[^\s/?#@\\]+$/.test(host)) return { untold: 'X-Forwarded-Host' }
  const scheme = headers.get('x-forwarded-proto') === 'http' ? 'http' : 'https'
  return describe(method, `${scheme}://${host}${pathOf(uri)}`, headers)
}

/** The request whose path and query stand behind `prefix`, as Envoy's `ext_authz` asks: method and host are the call's own. */
export function byPath(request: Request, prefix: string): RequestDescription | Untold {
  const { method, headers } = request
  const { host, pathname, search, protocol } = new URL(request.url)
  return describe(
    method,
    `${protocol}//${host}${pathname.slice(prefix.length) || '/'}${search}`,
    headers,
  )
}

function describe(method: string, url: string, headers: Headers): RequestDescription {
  const clients = [...headers].filter(([name]) => !TELLING.test(name))
  const ip = clientOf(headers)
  return { method, url, headers: Object.fromEntries(clients), ...(ip !== undefined && { ip }) }
}

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
