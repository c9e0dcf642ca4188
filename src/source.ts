import { parseCookie } from 'cookie'
import type { Source } from './schema/credentials.ts'
import type { Seen } from './seen.ts'

/**
 * What a client says in a header, cookie or query parameter, or as its bearer token (RFC 6750, 2.1); `undefined` where it says
 * nothing. Two different values count as nothing: which of them the origin takes is not ours to guess. (But a header that is sent
 * twice reaches us as one text with a comma, RFC 9110, 5.3, which is a value like others: `User-Agent` has commas of its own.)
 * Never throws.
 */
export const readSource = (source: Source, seen: Seen): string | undefined =>
  only(valuesOf(source, seen))

/**
 * What a client says at the first of several sources at which it says anything. Two different values there are nothing, and no
 * later source makes up for them: a client must not choose between what we count and what the origin takes.
 */
export function readFirst(sources: Source[], seen: Seen): string | undefined {
  for (const source of sources) {
    const values = valuesOf(source, seen)
    if (values.size > 0) return only(values)
  }
  return undefined
}

const only = (values: Set<string>) => (values.size === 1 ? [...values][0] : undefined)

function valuesOf({ source, name }: Source, seen: Seen): Set<string> {
  const { headers } = seen.request
  const said: Record<Source['source'], () => (string | null | undefined)[]> = {
    header: () => [headers.get(name)],
    bearer: () => bearers(headers.get('authorization') ?? ''),
    query: () => seen.query.getAll(name),
    // One by one: of a whole field the parser hands out the first of two that share a name.
    cookie: () =>
      (headers.get('cookie') ?? '')
        .split(';')
        .filter((pair) => pair.includes(name))
        .map((pair) => parseCookie(pair)[name]),
  }
  return new Set(said[source]().flatMap((value) => value || []))
}

/** The bearer tokens of an `Authorization` field, and where there is one whatever stands beside it: the field was sent twice. */
function bearers(field: string): string[] {
  const fields = field.split(',').map((text) => text.trim())
  const tokens = fields.map((text) => /^bearer +(\S+)$/i.exec(text)?.[1])
  return tokens.some((token) => token) ? tokens.map((token, index) => token ?? fields[index]!) : []
}
