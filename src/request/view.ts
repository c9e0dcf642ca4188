import { type Address, parseAddress } from '../base/ip.ts'
import { readings } from './path.ts'

/** The context that the runtime provides with a request. */
export interface RuntimeContext {
  /** Variables and secrets. */
  env: Record<string, unknown>
  /** Keeps the isolate active until the promise settles, also after the response is sent. */
  waitUntil: (promise: Promise<unknown>) => void
  /** Hono's context, for key functions. */
  context: unknown
}

/** The properties of a request that policies use. */
export interface RequestView extends RuntimeContext {
  request: Request
  /** Host in lower case, without port and final dot. */
  host: string
  /** Normalized path, in lower case unless paths are case-sensitive. */
  path: string
  /** All readings of the path, `path` first. */
  paths: string[]
  method: string
  query: URLSearchParams
  /** Address of the client as Cloudflare reports it. */
  address: Address | undefined
  /** Country code in upper case: ISO 3166-1 alpha-2, `T1` for Tor, `XX` for unknown. */
  country: string | undefined
  /** Number of the client's autonomous system. */
  asn: string | undefined
  /** IATA code of the Cloudflare data center. */
  colo: string | undefined
}

export function viewOf(
  request: Request,
  runtime: RuntimeContext,
  { caseSensitivePaths }: { caseSensitivePaths: boolean },
): RequestView {
  const url = new URL(request.url)
  const paths = readings(url.pathname).map((path) =>
    caseSensitivePaths ? path : path.toLowerCase(),
  )
  // This is the only header that a client cannot forge, because Cloudflare always sets it. `CF-IPCountry` can be forged if the zone
  // does not add it, so country, asn and colo are read from `request.cf`.
  const address = request.headers.get('cf-connecting-ip') ?? ''
  const known = (name: string) => {
    const value = (request as { cf?: Record<string, unknown> }).cf?.[name]
    return value ? String(value) : undefined
  }
  return {
    ...runtime,
    request,
    host: url.hostname.replace(/\.$/, '').toLowerCase(),
    path: paths[0]!,
    paths,
    method: request.method,
    address: parseAddress(address),
    // Getters, because few policies use these properties.
    get query() {
      return url.searchParams
    },
    get country() {
      return known('country')?.toUpperCase()
    },
    get asn() {
      return known('asn')
    },
    get colo() {
      return known('colo')
    },
  }
}
