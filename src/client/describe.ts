import type { RequestDescription } from '../api/schema.ts'

const MAX_HEADERS = 100
/** The maximum of all names and values together. A body may have far more. */
const MAX_CHARACTERS = 16_384
const MAX_URL = 8192

/**
 * Describes a request for the decision API. The decision API accepts every description, so that no client can avoid a decision with
 * an unusual request. Omits an invalid address. Omits the longest header fields if there are too many.
 * @param ip the client's address, from the connection or a trusted proxy. It is never read from header fields
 * @param fields the header fields to send: list those that your policies use, so that a client cannot displace them with other
 *   fields. Defaults to all
 */
export function describeRequest(
  request: Request,
  ip?: string,
  fields?: readonly string[],
): RequestDescription {
  const { cf } = request as { cf?: Record<string, unknown> }
  const { country, asn, colo } = cf ?? {}
  return {
    method: request.method,
    url: shortUrl(request.url),
    headers: someHeaders(request.headers, fields),
    ...(ip !== undefined && isAddress(ip) && { ip }),
    ...(/^[A-Z][A-Z\d]$/i.test(String(country)) && { country: String(country) }),
    ...(/^[1-9]\d{0,8}$/.test(String(asn)) && { asn: String(asn) }),
    ...(/^[A-Z\d]{3,4}$/i.test(String(colo)) && { colo: String(colo) }),
  }
}

/** Removes user name, password and fragment. Shortens a long URL: first the query, then repeated slashes, which policies ignore. */
function shortUrl(text: string): string {
  const url = new URL(text)
  url.username = ''
  url.password = ''
  url.hash = ''
  if (url.href.length > MAX_URL) url.search = ''
  if (url.href.length > MAX_URL) url.pathname = url.pathname.replace(/\/{2,}/g, '/')
  return url.href.slice(0, MAX_URL)
}

/** Fields that identify the client. They are never displaced. */
const CREDENTIALS = ['authorization', 'cookie']

function someHeaders(headers: Headers, fields?: readonly string[]): Record<string, string> {
  const selected = fields?.map((name) => name.toLowerCase())
  const size = ([name, value]: [string, string]) => name.length + value.length
  const rank = (field: [string, string]) => (CREDENTIALS.includes(field[0]) ? 0 : size(field))
  let available = MAX_CHARACTERS
  return Object.fromEntries(
    [...headers]
      .filter(([name, value]) => name.length <= 256 && value.length <= 8192)
      .filter(([, value]) => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value))
      .filter(([name]) => !selected || selected.includes(name))
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, MAX_HEADERS)
      .filter((field) => {
        available -= size(field)
        return available >= 0
      }),
  )
}

function isAddress(text: string): boolean {
  // A URL would parse 010 as 8.
  if (/^(?:(?:0|[1-9]\d{0,2})(?:\.|$)){4}$/.test(text)) return URL.canParse(`http://${text}/`)
  return /^[\dA-Fa-f.:]{2,45}$/.test(text) && URL.canParse(`http://[${text}]/`)
}
