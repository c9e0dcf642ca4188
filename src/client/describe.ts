import type { RequestDescription } from '../api/schema.ts'
import { isAmbiguous } from '../core/base/ambiguous-target.ts'
import { HOST } from '../core/base/host.ts'

const MAX_HEADERS = 100
/** The maximum of all names and values together. A body may have far more. */
const MAX_CHARACTERS = 16_384
const MAX_URL = 8192
const MAX_HOST = 253
const MAX_METHOD = 32

/**
 * Describes a request for the decision API, which accepts every description, so that no client can avoid a decision with an unusual request.
 * Omits an invalid address. Omits the longest header fields if there are too many, a query or path that is too long, and says so in `omitted`:
 * the decision API reads what is omitted in the way that is strictest for the client.
 * @param ip the client's address, from the connection or a trusted proxy. It is never read from header fields
 * @param fields the header fields to send: list those that your policies use, so that other fields cannot displace them. Defaults to all
 */
export function describeRequest(
  request: Request,
  ip?: string,
  fields?: readonly string[],
): RequestDescription {
  const { country, asn, colo } = (request as { cf?: Record<string, unknown> }).cf ?? {}
  const omitted: RequestDescription['omitted'] = []
  const url = shortUrl(request, omitted)
  const headers = someHeaders(request.headers, omitted, fields)
  return {
    method: request.method.slice(0, MAX_METHOD),
    url,
    headers,
    ...(omitted.length > 0 && { omitted }),
    ...(ip !== undefined && isAddress(ip) && { ip }),
    ...(/^[A-Z][A-Z\d]$/i.test(String(country)) && { country: String(country) }),
    ...(/^[1-9]\d{0,8}$/.test(String(asn)) && { asn: String(asn) }),
    ...(/^[A-Z\d]{3,4}$/i.test(String(colo)) && { colo: String(colo) }),
  }
}

type OmittedParts = NonNullable<RequestDescription['omitted']>

/**
 * Removes user name, password and fragment. Shortens a long URL: first the query, then the path. The end of a host is kept, because
 * policies match domains. A path that a URL parser and a router may read differently is left out too: Workers keep the URL as it was sent.
 */
function shortUrl(request: Request, omitted: OmittedParts): string {
  const url = new URL(request.url)
  const isUnclear =
    isAmbiguous(request.url.split('#', 1)[0]!) || !HOST.test(request.headers.get('host') ?? 'a')
  url.username = ''
  url.password = ''
  url.hash = ''
  // The letter keeps the rest a name: a URL ignores a host that reads as an invalid number.
  if (url.hostname.length > MAX_HOST) url.hostname = `x${url.hostname.slice(1 - MAX_HOST)}`
  if (url.href.length > MAX_URL && url.search !== '') {
    url.search = ''
    omitted.push('query')
  }
  if (isUnclear || url.href.length > MAX_URL) {
    url.pathname = '/'
    omitted.push('path')
  }
  return url.href
}

/** Fields that identify the client, or say how to read the body. They are never displaced. */
const FIRST = ['authorization', 'cookie', 'content-type']

function someHeaders(
  headers: Headers,
  omitted: OmittedParts,
  fields?: readonly string[],
): Record<string, string> {
  const selected = fields?.map((name) => name.toLowerCase())
  const size = ([name, value]: [string, string]) => name.length + value.length
  const rank = (field: [string, string]) => (FIRST.includes(field[0]) ? 0 : size(field))
  let available = MAX_CHARACTERS
  const all = [...headers].filter(([name]) => !selected || selected.includes(name))
  const sent = all
    .filter(([name, value]) => name.length <= 256 && value.length <= 8192)
    .filter(([, value]) => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, MAX_HEADERS)
    .filter((field) => {
      available -= size(field)
      return available >= 0
    })
  if (sent.length < all.length) omitted.push('headers')
  return Object.fromEntries(sent)
}

function isAddress(text: string): boolean {
  // A URL would parse 010 as 8.
  if (/^(?:(?:0|[1-9]\d{0,2})(?:\.|$)){4}$/.test(text)) return URL.canParse(`http://${text}/`)
  return /^[\dA-Fa-f.:]{2,45}$/.test(text) && URL.canParse(`http://[${text}]/`)
}
