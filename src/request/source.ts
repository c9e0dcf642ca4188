import { parseCookie } from 'cookie'
import type { KeyFault } from '../base/decision.ts'
import type { Source } from '../config/schema/credentials.ts'
import type { RequestView } from './view.ts'

/** A credential that is present but does not identify a client. The origin may still accept it, unlike a missing one. */
export class Unusable {
  readonly why: KeyFault
  constructor(why: KeyFault) {
    this.why = why
  }
}
export const UNREADABLE = new Unusable('unreadable')
export const UNVERIFIED = new Unusable('unverified')

/**
 * Reads a header, a cookie, a query parameter or a bearer token (RFC 6750, 2.1). Returns `undefined` if it is absent or empty. Two
 * different values are unreadable. A header that is sent twice arrives as one value with a comma (RFC 9110, 5.3) and is read as such,
 * because values such as `User-Agent` also contain commas. Never throws.
 */
export const readSource = (source: Source, view: RequestView): string | Unusable | undefined =>
  only(valuesOf(source, view))

/**
 * Reads the first of several sources that is present. If it is unreadable, later sources are not read. Otherwise a client could make
 * Sluice count one credential while the origin uses another.
 */
export function readFirst(sources: Source[], view: RequestView): string | Unusable | undefined {
  for (const source of sources) {
    const found = readSource(source, view)
    if (found !== undefined) return found
  }
  return undefined
}

/** Reports whether none of these sources is present, apart from a bearer token. */
export const hasAtMostBearer = (sources: Source[], view: RequestView): boolean =>
  readFirst(
    sources.filter(({ source }) => source !== 'bearer'),
    view,
  ) === undefined

const only = (values: Set<string | Unusable>) => (values.size > 1 ? UNREADABLE : [...values][0])

function valuesOf({ source, name }: Source, view: RequestView): Set<string | Unusable> {
  const { headers } = view.request
  const values: Record<Source['source'], () => (string | Unusable | null | undefined)[]> = {
    header: () => [headers.get(name)],
    bearer: () => bearers(headers.get('authorization') ?? ''),
    query: () => view.query.getAll(name),
    // Each pair separately, because the parser returns only the first of two cookies with the same name.
    cookie: () =>
      (headers.get('cookie') ?? '')
        .split(';')
        .filter((pair) => pair.includes(name))
        .map((pair) => cookieOf(pair, name)),
  }
  return new Set(values[source]().flatMap((value) => value || []))
}

/** Matches a JSON Web Token as a separate word, or in `token="…"`. */
const TOKEN_WORD = /(?:^|\s|\btoken="?)[\w-]+\.[\w-]+\.[\w-]+(?:["\s,;]|$)/i

/**
 * Finds the bearer tokens of an `Authorization` header, which contains a comma if it was sent twice. Frameworks use the first word after
 * the scheme, everything up to a `;` or a quote, or the text after the last `Bearer`; a value that they would read differently is
 * unreadable. Many origins ignore the scheme and use the second word, or the rest without `Bearer `. So a token with another scheme is
 * unreadable too.
 */
function bearers(field: string): (string | Unusable)[] {
  if (!/bearer\W/i.test(field)) return TOKEN_WORD.test(field) ? [UNREADABLE] : []
  return field.split(',').map((text) => {
    const token = /^\s*bearer\s+([!#-:<-~]+)(?:\s|$)/i.exec(text)?.[1]
    const schemes = text.match(/bearer\s/gi)?.length
    return (schemes === 1 && token) || UNREADABLE
  })
}

/**
 * Reads the value of a cookie from one pair. Returns `undefined` if the pair is another cookie. Double quotes around a value are not part
 * of it (RFC 6265, 4.1.1). Some frameworks resolve escapes within quotes, and some separate cookies by white space or commas; such a pair
 * is unreadable.
 */
function cookieOf(pair: string, name: string): string | Unusable | undefined {
  const words = pair.trim().split(/[\s,]+/)
  const isNamed = (word: string, index: number) =>
    word.startsWith(`${name}=`) || (word === name && words[index + 1]?.startsWith('='))
  if (words.findLastIndex(isNamed) > 0) return UNREADABLE
  const value = parseCookie(pair)[name]
  if (!pair.includes('"') || value === undefined) return value
  const sent = pair.slice(pair.indexOf('=') + 1).trim()
  if (!sent.startsWith('"')) return value
  return /^"[^"\\]*"$/.test(sent) ? parseCookie(`${name}=${sent.slice(1, -1)}`)[name] : UNREADABLE
}
