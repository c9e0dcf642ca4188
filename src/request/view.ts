import { type Address, parseAddress } from '../base/ip.ts'
import { readings } from './path.ts'

/** What the runtime gives along with a request. */
export interface RuntimeContext {
  /** Variables and secrets. */
  env: Record<string, unknown>
  /** Keeps the isolate at work on something after the answer has gone. */
  waitUntil: (promise: Promise<unknown>) => void
  /** Hono's context, for key functions. */
  context: unknown
}

/** What policies look at of one request. */
export interface RequestView extends RuntimeContext {
  request: Request
  /** Lower case, without port and final dot. */
  host: string
  /** Normalized; in lower case unless paths are case-sensitive. */
  path: string
  /** All that origins may take the path for, `path` first. */
  paths: string[]
  method: string
  query: URLSearchParams
  /** The client's, as Cloudflare saw it. */
  address: Address | undefined
  /** ISO 3166-1 alpha-2, `T1` for Tor, `XX` for unknown. */
  country: string | undefined
  /** Number of the autonomous system the client is in. */
  asn: string | undefined
  /** IATA code of the data centre that answers. */
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
  // The one header that Cloudflare sets itself and a client cannot. All others are a client's word, `CF-IPCountry` too where the
  // zone does not add it: country, asn and colo come beside the request.
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
    // What few policies ask for is made when they do.
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
