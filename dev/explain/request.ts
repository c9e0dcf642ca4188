/** The request that the command line describes. */
export interface RequestTerms {
  method: string
  url: string
  /** The path as written, without the query. */
  path: string
  headers: Headers
  /** Properties of the client that Cloudflare adds. */
  cf: { country?: string; asn?: number; colo?: string }
}

export const toRequest = ({ method, url, headers, cf }: RequestTerms): Request =>
  Object.assign(new Request(url, { method, headers }), { cf })
