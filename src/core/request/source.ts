import { UNREADABLE, Unusable } from '../base/part.ts'
import type { Source } from '../config/schema/credentials.ts'
import { mayBe } from './names.ts'
import { headerValues, queryValues, spelledValues } from './values.ts'
import type { TokenView } from './view.ts'

export const UNVERIFIED = new Unusable('unverified')

type SourceView = Pick<TokenView, 'request' | 'query' | 'search' | 'pathParameters' | 'omitted'>

/** Reports whether a text has at least three parts, as tokens in compact form do. */
export const looksLikeJwt = (text: string): boolean => text.indexOf('.') < text.lastIndexOf('.')

/**
 * Reads a header, a cookie, a query parameter or a bearer token (RFC 6750, 2.1). Returns `undefined` if it is absent or empty. Two
 * different values are unreadable, and so is another spelling of the name, which some origins read as the name. So is a header with a
 * comma, because a header that is sent twice arrives as one value with a comma (RFC 9110, 5.3), and origins read the first, the last or
 * all; apart from fields such as `User-Agent`, whose values contain commas. Never throws.
 */
export function readSource(source: Source, view: SourceView): string | Unusable | undefined {
  const values = valuesOf(source, view).filter((value) => Boolean(value))
  const [first, ...others] = values
  return others.some((other) => other !== first) ? UNREADABLE : (first ?? undefined)
}

/** Reads the first source that is present, also if it is unreadable: Sluice must not count one credential while the origin uses another. */
export function readFirst(sources: Source[], view: SourceView): string | Unusable | undefined {
  for (const source of sources) {
    const found = readSource(source, view)
    if (found !== undefined) return found
  }
  return undefined
}

/** True if none of these sources is present, apart from a bearer token. */
export const hasAtMostBearer = (sources: Source[], view: SourceView): boolean =>
  readFirst(
    sources.filter(({ source }) => source !== 'bearer'),
    view,
  ) === undefined

type Value = string | Unusable | null | undefined

function valuesOf({ source, name }: Source, view: SourceView): Value[] {
  const { headers } = view.request
  const isOmitted = view.omitted?.includes(source === 'query' ? 'query' : 'headers')
  if (source === 'query') return isOmitted ? [UNREADABLE] : certain(queryValues(view, name))
  if (source === 'header') {
    const [values, isOne] = headerValues(headers, name)
    if (values.length === 0 && isOmitted) return [UNREADABLE]
    return isOne ? values.slice(0, 1) : certain(values)
  }
  const [value] = spelledValues(headers, source === 'bearer' ? 'authorization' : 'cookie')
  if (value === undefined) return isOmitted ? [UNREADABLE] : []
  if (source === 'bearer') return bearers(value)
  // Each pair separately, because the parser returns only the first of two cookies with the same name.
  return value.split(';').map((pair) => cookieOf(pair, name))
}

/** A value that all origins read, or unreadable. */
function certain(values: (string | undefined)[]): (string | Unusable)[] {
  const [value, ...others] = new Set(values.filter((one) => one !== ''))
  return others.length > 0 ? [UNREADABLE] : value === undefined ? [] : [value]
}

/** Matches a JSON Web Token as a separate word, or in `token="…"`. */
const TOKEN_WORD = /(?:^|\s|\btoken="?)[\w-]+\.[\w-]+\.[\w-]+(?:["\s,;]|$)/i

/**
 * The bearer tokens of an `Authorization` header, which contains a comma if it was sent twice. Frameworks use the first word after the scheme,
 * everything up to a `;` or a quote, or the text after the last `Bearer`; many ignore the scheme and use the second word. A value that they
 * would read differently, and a token with another scheme, is unreadable.
 */
function bearers(field: string): (string | Unusable)[] {
  if (!/bearer\W/i.test(field)) return TOKEN_WORD.test(field) ? [UNREADABLE] : []
  return field.split(',').map((text) => {
    const token = /^\s*bearer\s+([!#-:<-~]+)(?:\s|$)/i.exec(text)?.[1]
    const schemes = text.match(/bearer\s/gi)?.length
    return (schemes === 1 && token) || UNREADABLE
  })
}

/** What separates cookies for some origins. */
const SEPARATORS = /(?:[^!-~]|,)+/

/** A value with characters at an end that some origins drop, or with a separator. */
const ODD_VALUE = /^[^!-~]|[^!-~]$|[\s,]/

/**
 * Reads the value of a cookie from one pair. Returns `undefined` if the pair is another cookie. Double quotes around a value are not part
 * of it (RFC 6265, 4.1.1). Some frameworks resolve escapes within quotes, some separate cookies by white space or commas, and some change
 * names; such a pair is unreadable.
 */
function cookieOf(pair: string, name: string): string | Unusable | undefined {
  if (pair.length <= name.length) return undefined
  const equals = pair.indexOf('=')
  const sentName = bare(pair.slice(0, Math.max(0, equals)))
  if (sentName !== name && mayBe(sentName, name)) return UNREADABLE
  if (pair.includes(name)) {
    const words = pair.trim().split(SEPARATORS)
    const isNamed = (word: string, index: number) =>
      word.startsWith(`${name}=`) || (word === name && words[index + 1]?.startsWith('='))
    if (words.findLastIndex(isNamed) > 0) return UNREADABLE
  }
  if (sentName !== name) return undefined
  const sent = bare(pair.slice(equals + 1))
  if (!sent.startsWith('"')) return cookieValue(sent)
  return /^"[^"\\]*"$/.test(sent) ? cookieValue(sent.slice(1, -1)) : UNREADABLE
}

/** A value with its percent-encoding decoded where it is valid. PHP and Rack read a `+` as a space, so both count as one. */
function cookieValue(sent: string): string | Unusable {
  if (ODD_VALUE.test(sent)) return UNREADABLE
  let value = sent
  try {
    value = decodeURIComponent(sent)
  } catch {}
  // `cookie-parser` reads this as JSON, in which one text has many spellings.
  return value.startsWith('j:') ? UNREADABLE : value.replaceAll('+', ' ')
}

/** Removes spaces and tabs from both ends, in linear time. (`trim` removes other characters too.) */
const bare = (text: string) => /^[ \t]*([^ \t](?:[\s\S]*[^ \t])?)/.exec(text)?.[1] ?? ''
