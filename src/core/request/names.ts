/** Other spellings of a name that some origins read as the name. */
import { strip } from './fold.ts'

/** Decodes `%u0061` as ASP.NET does, and other percent-encodings where they are valid. */
function decoded(name: string): string {
  if (!name.includes('%')) return name
  const text = name.replace(/%u([0-9a-f]{4})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Characters before and after a name that some origins drop: all but printable ASCII, and brackets and `?` before it. */
const isDropped = (character: string, isBefore: boolean): boolean =>
  character <= ' ' || character > '~' || (isBefore && '[]?$'.includes(character))

/**
 * Folds a name as some origins do. PHP reads `.`, a space and an open `[` as `_`, and ends a name at a NUL; Rack and qs read `[name]` as
 * `name`, and `name[]` as a list; ASP.NET ignores the letter case.
 */
function folded(name: string): string {
  const text = strip(decoded(name).split('\0', 1)[0]!, isDropped)
  const close = text.indexOf(']')
  // Without a `]` the bracket is a part of the name.
  const whole = close < 0 ? text : text.slice(0, close).split('[', 1)[0]!
  return whole.replace(/[. []/g, '_').toLowerCase()
}

const known = new Map<string, string>()

/** True if some origin may read a sent name as a name of the configuration, or as a list of that name. */
export function mayBe(sent: string, name: string): boolean {
  if (sent.length < name.length) return false
  const wanted = known.get(name) ?? folded(name)
  known.set(name, wanted)
  return folded(sent) === wanted
}

/**
 * The name of the variable that CGI makes of a header field: PHP, Rack and WSGI read `X_Plan` as `X-Plan` (RFC 3875, 4.1.18), and PHP also
 * each other character that is no letter and no digit, as in `X.Plan`.
 */
export const cgiName = (field: string): string =>
  /[^a-z\d-]/.test(field) ? field.replace(/[^a-z\d]/gi, '-').toLowerCase() : field

/** The fields of a request with a character that is no letter, no digit and no `-`. Few requests have one. */
const unusual = new WeakMap<Headers, string[]>()

/** The names of a request's other fields that CGI cannot tell from a field. */
export function otherSpellings(headers: Headers, name: string): string[] {
  const own = cgiName(name)
  if (/^[a-z\d]*$/.test(own)) return []
  const known =
    unusual.get(headers) ?? [...headers.keys()].filter((field) => cgiName(field) !== field)
  unusual.set(headers, known)
  return [own, ...known].filter((field) => field !== name.toLowerCase() && cgiName(field) === own)
}
