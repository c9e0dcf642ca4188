import { Unusable } from '../base/unusable.ts'
import type { NamedSource } from '../config/schema/credentials.ts'
import { mayBe } from './names.ts'
import { ODD, queryValues, spelledValues } from './values.ts'
import type { TokenView } from './view.ts'

export const UNREADABLE = new Unusable('unreadable')

export type SourceView = Pick<
  TokenView,
  'request' | 'query' | 'search' | 'pathParameters' | 'omitted'
>

/**
 * Reads a header, a cookie or a query parameter. Returns `undefined` if it is absent or empty. Two different values are unreadable, and
 * so is another spelling of the name, which some origins read as the name. A header that is sent twice arrives as one value with a comma (RFC 9110, 5.3) and is read as such,
 * because values such as `User-Agent` also contain commas. Never throws.
 */
export const readSource = (source: NamedSource, view: SourceView): string | Unusable | undefined =>
  only(valuesOf(source, view))

/** The value, if there is no other. */
export function only(values: Value[]): string | Unusable | undefined {
  const [first, ...others] = values.filter((value) => Boolean(value))
  return others.some((other) => other !== first) ? UNREADABLE : (first ?? undefined)
}

type Value = string | Unusable | null | undefined

function valuesOf({ source, name }: NamedSource, view: SourceView): Value[] {
  const { request, omitted } = view
  if (source === 'query')
    return omitted?.includes('query') ? [UNREADABLE] : certain(queryValues(view, name))
  const field = source === 'header' ? name : 'cookie'
  const values = spelledValues(request.headers, field)
  const [value] = values
  if (values.length === 0) return omitted?.includes('headers') ? [UNREADABLE] : []
  if (source === 'header') return value && ODD.test(value) ? [UNREADABLE] : certain(values)
  // Each pair separately, because the parser returns only the first of two cookies with the same name.
  return value!.split(';').map((pair) => cookieOf(pair, name))
}

/** A value that all origins read, or unreadable. */
function certain(values: (string | undefined)[]): (string | Unusable)[] {
  const [value, ...others] = new Set(values.filter((one) => one !== ''))
  return others.length > 0 ? [UNREADABLE] : value === undefined ? [] : [value]
}

/** What separates cookies for some origins. */
const SEPARATORS = /(?:[^!-~]|,)+/

/** A value with characters at an end that some origins drop. */
const ODD_VALUE = /^[^!-~]|[^!-~]$/

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
