import { Rejection } from './rejection.ts'

/** The parts of a request line (RFC 9112, 3). */
export interface RequestLine {
  method: string
  target: string
  /** Of a target in absolute form. */
  host: string | undefined
}

/**
 * Parses a request line, such as `GET /path?query HTTP/1.1`. A target may contain spaces, because some servers log it decoded.
 * @param isEscaped true if the server wrote `"` as `\"` or `\x22`
 */
export function readRequest(text: string, isEscaped: boolean): RequestLine | Rejection {
  const space = text.indexOf(' ')
  if (space < 0) return withoutRequest(text)
  let last = text.length - 1
  while (text.charCodeAt(last) !== SPACE) last -= 1 // `lastIndexOf` takes longer
  const end = last > space && text.startsWith('HTTP/', last + 1) ? last : text.length
  return readMethodAndTarget(text.slice(0, space), text.slice(space + 1, end), isEscaped)
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/
/** Anything but visible ASCII, and `"`, `#`, `<`, `>`, `\`. */
const UNUSUAL = /[^!$-;=?-[\]-~]/
const SLASH = 47
const SPACE = 32

export function readMethodAndTarget(
  method: string,
  raw: string,
  isEscaped = false,
): RequestLine | Rejection {
  if (!METHODS.has(method) && (method === '-' || !TOKEN.test(method))) {
    return withoutRequest(`${method} ${raw}`)
  }
  const text = UNUSUAL.test(raw) ? encodeTarget(raw, isEscaped) : raw
  if (text.charCodeAt(0) === SLASH) return { method, target: text, host: undefined }
  const [, host, target] = /^https?:\/\/([^/?]+)(.*)$/i.exec(text) ?? []
  if (host === undefined || target === undefined) return withoutPath(method, text)
  return { method, target: target.startsWith('/') ? target : `/${target}`, host: readHost(host) }
}

/** Percent-encodes the characters that a target cannot have. A `#` would begin a fragment. */
function encodeTarget(raw: string, isEscaped: boolean): string {
  const text = isEscaped
    ? raw.replace(/\\x([\da-f]{2})|\\(.)/gi, (_, hex, character) => {
        if (hex) return `%${hex.toUpperCase()}`
        return CONTROLS[character] ?? character
      })
    : raw
  return text.toWellFormed().replace(/[^!-~]+|[#"<>]/g, (part) => encodeURIComponent(part))
}

const CONTROLS: Record<string, string> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** Replaces the escapes of Apache and nginx. Bytes above 127 are UTF-8. */
export const unescapeField = (text: string): string =>
  text.replace(/((?:\\x[\da-f]{2})+)|\\(.)/gi, (_, bytes, character) =>
    bytes
      ? utf8.decode(
          Uint8Array.from<string>(bytes.match(/[\da-f]{2}/gi), (hex) => Number.parseInt(hex, 16)),
        )
      : (CONTROLS[character] ?? character),
  )

/** The host in lower case, without port and final dot. */
export function readHost(text: string): string | undefined {
  const host = text.replace(/^.*@/, '').replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
  return host === '' || host === '-' ? undefined : host
}

function withoutRequest(text: string): Rejection {
  if (text === '' || text.startsWith('-')) return NO_REQUEST
  return text.startsWith('\\x16\\x03') || text.startsWith('\x16\x03') ? TLS : NOT_HTTP
}

const withoutPath = (method: string, target: string) =>
  method === 'CONNECT' || target === '*' ? NO_PATH : NOT_HTTP

const reject = (reason: string) => new Rejection(reason, 'without-request')
const NO_REQUEST = reject('the client sent no request')
const TLS = reject('the client began a TLS handshake on a port for plain HTTP')
const NOT_HTTP = reject('the client sent something that is not an HTTP request')
const NO_PATH = reject('the request has no path')
