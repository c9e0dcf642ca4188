import { parseCookie } from 'cookie'
import type { KeyFault } from '../base/decision.ts'
import type { Source } from '../config/schema/credentials.ts'
import type { RequestView } from './view.ts'

/** A credential that a request has, and that names no client. Unlike a missing one, the origin may accept it. */
export class Unusable {
  readonly why: KeyFault
  constructor(why: KeyFault) {
    this.why = why
  }
}
export const UNREADABLE = new Unusable('unreadable')
export const UNVERIFIED = new Unusable('unverified')

/**
 * Reads a header, a cookie, a query parameter or a bearer token (RFC 6750, 2.1); `undefined` where the request has none. Two
 * different values are unreadable. (A header that is sent twice arrives as one text with a comma, RFC 9110, 5.3. That is a value
 * like others: `User-Agent` has commas of its own.) Never throws.
 */
export const readSource = (source: Source, view: RequestView): string | Unusable | undefined =>
  only(valuesOf(source, view))

/**
 * Reads the first of several sources at which a request has anything. If that is unreadable, no later source makes up for it: a
 * client must not choose between what Sluice counts and what the origin takes.
 */
export function readFirst(sources: Source[], view: RequestView): string | Unusable | undefined {
  for (const source of sources) {
    const found = readSource(source, view)
    if (found !== undefined) return found
  }
  return undefined
}

/** Whether a request has nothing at these sources, or nothing but a bearer token. */
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
    // One by one: of a whole field the parser returns the first of two that share a name.
    cookie: () =>
      (headers.get('cookie') ?? '')
        .split(';')
        .filter((pair) => pair.includes(name))
        .map((pair) => cookieOf(pair, name)),
  }
  return new Set(values[source]().flatMap((value) => value || []))
}

/** A JSON Web Token as a word of its own, or in `token="…"`. */
const TOKEN_WORD = /(?:^|\s|\btoken="?)[\w-]+\.[\w-]+\.[\w-]+(?:["\s,;]|$)/i

/**
 * The bearer tokens of an `Authorization` field, which has a comma where it was sent twice. Frameworks take the first word after the
 * scheme, or everything up to a `;` or a quote, or what follows the last `Bearer`: where they would differ, it is unreadable.
 * Many origins take the second word, or what is left without `Bearer `, and ignore the scheme: so is a token without that scheme.
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
 * The value of one cookie; `undefined` where the pair is of another one. DQUOTEs around a value are no part of it (RFC 6265, 4.1.1).
 * Some frameworks undo escapes between them, and some separate cookies by white space or commas: then it is unreadable.
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
