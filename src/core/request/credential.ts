/** Credentials: API keys and tokens. Only the features that read them import this file. */
import { Unusable } from '../base/unusable.ts'
import type { Source } from '../config/schema/credentials.ts'
import { only, readSource, type SourceView, UNREADABLE } from './source.ts'
import { spelledValues } from './values.ts'

export const UNVERIFIED = new Unusable('unverified')

/** Reports whether a text has at least three parts, as tokens in compact form do. */
export const looksLikeJwt = (text: string): boolean => text.indexOf('.') < text.lastIndexOf('.')

/**
 * Reads the first of several sources that is present. If it is unreadable, later sources are not read. Otherwise a client could make
 * Sluice count one credential while the origin uses another.
 */
export function readFirst(sources: Source[], view: SourceView): string | Unusable | undefined {
  for (const source of sources) {
    const found = source.source === 'bearer' ? readBearer(view) : readSource(source, view)
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

/** Reads a bearer token (RFC 6750, 2.1). Two different tokens are unreadable. */
function readBearer({ request, omitted }: SourceView): string | Unusable | undefined {
  const [field] = spelledValues(request.headers, 'authorization')
  if (field !== undefined) return only(bearers(field))
  return omitted?.includes('headers') ? UNREADABLE : undefined
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
