import type { Address } from '../base/ip.ts'
import type { ReadAddress } from './client-address.ts'
import { readings } from './path.ts'

/** The context that the runtime provides with a request. */
export interface RuntimeContext {
  /** Variables and secrets. */
  env: Record<string, unknown>
  /** Keeps the isolate active until the promise settles, also after the response is sent. */
  waitUntil: (promise: Promise<unknown>) => void
  /** Hono's context, for key functions. */
  context: unknown
  /** Reads the address of the connection, where the runtime reports it. A function, because few configurations use it. */
  remoteAddress?: () => string | undefined
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
  /** Address of the client. Reading it throws a `ConfigError` if `clientAddress` is not configured and the runtime is not Cloudflare. */
  address: Address | undefined
  /** Country code in upper case: ISO 3166-1 alpha-2, `T1` for Tor, `XX` for unknown. */
  country: string | undefined
  /** Number of the client's autonomous system. */
  asn: string | undefined
  /** IATA code of the Cloudflare data center. */
  colo: string | undefined
}

/** What is known about the client of a request. */
export type ClientDetails = Pick<RequestView, 'address' | 'country' | 'asn' | 'colo'>

/** Reads the details of a client from a request, each when it is first needed, because few policies use them. */
export function clientOf(
  request: Request,
  { remoteAddress }: RuntimeContext,
  readAddress: ReadAddress,
): ClientDetails {
  // `CF-IPCountry` can be forged if the zone does not add it, so country, asn and colo are read from `request.cf`.
  const known = (name: string) => {
    const value = (request as { cf?: Record<string, unknown> }).cf?.[name]
    return value ? String(value) : undefined
  }
  let read: { address: Address | undefined } | undefined
  return {
    get address() {
      read ??= { address: readAddress({ request, remoteAddress: remoteAddress?.() }) }
      return read.address
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

export function viewOf(
  request: Request,
  runtime: RuntimeContext,
  { caseSensitivePaths }: { caseSensitivePaths: boolean },
  client: ClientDetails,
): RequestView {
  const url = new URL(request.url)
  const paths = readings(url.pathname).map((path) =>
    caseSensitivePaths ? path : path.toLowerCase(),
  )
  return {
    ...runtime,
    request,
    host: url.hostname.replace(/\.$/, '').toLowerCase(),
    path: paths[0]!,
    paths,
    method: request.method,
    get query() {
      return url.searchParams
    },
    get address() {
      return client.address
    },
    get country() {
      return client.country
    },
    get asn() {
      return client.asn
    },
    get colo() {
      return client.colo
    },
  }
}
