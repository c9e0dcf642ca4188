import { Unusable } from '../base/unusable.ts'
import type { Source } from '../config/schema/credentials.ts'
import type { TokenView } from './view.ts'

export const UNREADABLE = new Unusable('unreadable')
export const UNVERIFIED = new Unusable('unverified')

type SourceView = Pick<TokenView, 'request' | 'query' | 'omitted'>

/** Reports whether a text has at least three parts, as tokens in compact form do. */
export const looksLikeJwt = (text: string): boolean => text.indexOf('.') < text.lastIndexOf('.')

/**
 * Reads a header, a cookie, a query parameter or a bearer token (RFC 6750, 2.1). Returns `undefined` if it is absent or empty. Two
 * different values are unreadable. A header that is sent twice arrives as one value with a comma (RFC 9110, 5.3) and is read as such,
 * because values such as `User-Agent` also contain commas. Never throws.
 */
export function readSource(source: Source, view: SourceView): string | Unusable | undefined {
  const values = valuesOf(source, view).filter((value) => Boolean(value))
  const [first, ...others] = values
  return others.some((other) => other !== first) ? UNREADABLE : (first ?? undefined)
}

/**
 * Reads the first of several sources that is present. If it is unreadable, later sources are not read. Otherwise a client could make
 * Sluice count one credential while the origin uses another.
 */
export function readFirst(sources: Source[], view: SourceView): string | Unusable | undefined {
  for (const source of sources) {
    const found = readSource(source, view)
    if (found !== undefined) return found
  }
  return undefined
}

/** Reports whether none of these sources is present, apart from a bearer token. */
export const hasAtMostBearer = (sources: Source[], view: SourceView): boolean =>
  readFirst(
    sources.filter(({ source }) => source !== 'bearer'),
    view,
  ) === undefined

type Value = string | Unusable | null | undefined

function valuesOf({ source, name }: Source, view: SourceView): Value[] {
  const { request, omitted } = view
  if (source === 'query') return omitted?.includes('query') ? [UNREADABLE] : view.query.getAll(name)
  const field = source === 'header' ? name : source === 'bearer' ? 'authorization' : 'cookie'
  const value = request.headers.get(field)
  if (value === null) return omitted?.includes('headers') ? [UNREADABLE] : []
  if (source === 'header') return [value]
  if (source === 'bearer') return bearers(value)
  // Each pair separately, because the parser returns only the first of two cookies with the same name.
  return value
    .split(';')
    .filter((pair) => pair.includes(name))
    .map((pair) => cookieOf(pair, name))
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
  const value = valueIn(pair, name)
  if (!pair.includes('"') || value === undefined) return value
  const sent = pair.slice(pair.indexOf('=') + 1).trim()
  if (!sent.startsWith('"')) return value
  return /^"[^"\\]*"$/.test(sent) ? valueIn(`${name}=${sent.slice(1, -1)}`, name) : UNREADABLE
}

/** The value of a pair with this name. Its percent-encoding is decoded where it is valid. */
function valueIn(pair: string, name: string): string | undefined {
  const equals = pair.indexOf('=')
  if (equals < 0 || bare(pair.slice(0, equals)) !== name) return undefined
  const value = bare(pair.slice(equals + 1))
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** Removes spaces and tabs from both ends, in linear time. (`trim` removes other characters too.) */
const bare = (text: string) => /^[ \t]*([^ \t](?:[\s\S]*[^ \t])?)/.exec(text)?.[1] ?? ''
