import type { Sender } from './sender.ts'

/** One request of an access log. Fields that the log does not have are absent. */
export interface LogLine {
  /** ms since the epoch. */
  time: number
  /** The address of the client, as the log has it. */
  ip?: string | undefined
  /** What is known about this address. */
  sender?: Sender | undefined
  method: string
  /** The path with the query, percent-encoded. Begins with `/`. */
  target: string
  host?: string | undefined
  /** The status of the response that the client got. */
  status?: number | undefined
  userAgent?: string | undefined
  referer?: string | undefined
  /** ISO 3166-1 alpha-2. */
  country?: string | undefined
  asn?: string | undefined
  /** IATA code of the Cloudflare data center. */
  colo?: string | undefined
  /** Request headers by their names in lower case, apart from those above. */
  headers?: Record<string, string> | undefined
}

/** What a log can say about a request, apart from its time, method and path. */
export type Fact =
  | 'ip'
  | 'host'
  | 'query'
  | 'status'
  | 'country'
  | 'asn'
  | 'colo'
  /** A request header, with its name in lower case. A user agent is `header:user-agent`, a referrer is `header:referer`. */
  | `header:${string}`
