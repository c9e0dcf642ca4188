/** A request as the command line tells it. */
export interface RequestTerms {
  method: string
  url: string
  /** As given, without the query. */
  path: string
  headers: Headers
  /** What Cloudflare tells beside it. */
  cf: { country?: string; asn?: number; colo?: string }
}

export const toRequest = ({ method, url, headers, cf }: RequestTerms): Request =>
  Object.assign(new Request(url, { method, headers }), { cf })
