import type { RequestDescription } from '../api/schema.ts'

const MAX_HEADERS = 100
/** Of all names and values together, far below what a body may have. */
const MAX_CHARACTERS = 16_384
const MAX_URL = 8192

/**
 * Tells the decision API of a request in hand. The decision API takes all that comes out, whatever the client sent, so that no client can be
 * asked about in vain: of too many header fields the longest are left out, and an address that is none.
 * @param ip the client's address, from the connection or a proxy of yours: no header is believed
 * @param fields names of the only header fields to tell: those that your policies look at. Then no client can crowd them out.
 *   Default all
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

/** Without what no request has on its way; where it is too long the query goes first, and what policies do not see of the path. */
function shortUrl(text: string): string {
  const url = new URL(text)
  url.username = ''
  url.password = ''
  url.hash = ''
  if (url.href.length > MAX_URL) url.search = ''
  if (url.href.length > MAX_URL) url.pathname = url.pathname.replace(/\/{2,}/g, '/')
  return url.href.slice(0, MAX_URL)
}

/** They say who asks, and come first. */
const CREDENTIALS = ['authorization', 'cookie']

function someHeaders(headers: Headers, fields?: readonly string[]): Record<string, string> {
  const told = fields?.map((name) => name.toLowerCase())
  const size = ([name, value]: [string, string]) => name.length + value.length
  const rank = (field: [string, string]) => (CREDENTIALS.includes(field[0]) ? 0 : size(field))
  let left = MAX_CHARACTERS
  return Object.fromEntries(
    [...headers]
      .filter(([name, value]) => name.length <= 256 && value.length <= 8192)
      .filter(([, value]) => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value))
      .filter(([name]) => !told || told.includes(name))
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, MAX_HEADERS)
      .filter((field) => {
        left -= size(field)
        return left >= 0
      }),
  )
}

function isAddress(text: string): boolean {
  // A URL would take 010 for 8.
  if (/^(?:(?:0|[1-9]\d{0,2})(?:\.|$)){4}$/.test(text)) return URL.canParse(`http://${text}/`)
  return /^[\dA-Fa-f.:]{2,45}$/.test(text) && URL.canParse(`http://[${text}]/`)
}
