/** The request that the command line describes. */
export interface RequestTerms {
  method: string
  url: string
  /** The path as written, without the query. */
  path: string
  headers: Headers
  /** The body. Undefined for a request without one. */
  body?: string | undefined
  /** Properties of the client that Cloudflare adds. */
  cf: {
    country?: string
    asn?: number
    colo?: string
    botManagement?: { ja4?: string; score?: number; verifiedBot?: boolean }
    verifiedBotCategory?: string
  }
}

export const toRequest = ({ method, url, headers, body, cf }: RequestTerms): Request =>
  Object.assign(new Request(url, { method, headers, body: body ?? null }), { cf })
