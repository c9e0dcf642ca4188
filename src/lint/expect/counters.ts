/** How many counters of a policy the requests of one client may use. */
import type { Policy } from '../../core/config/parse.ts'
import type { Condition } from '../../core/config/schema/condition.ts'
import type { KeyPart } from '../../core/config/schema/key.ts'
import type { Expectation } from './options.ts'

/** True for a value that `per` fixes: the same part, or a larger network around the address. */
const isFixedBy = (per: KeyPart[], part: KeyPart) =>
  per.some((one) =>
    one.source === 'ip' && part.source === 'ip'
      ? part.v4 <= one.v4 && part.v6 <= one.v6
      : JSON.stringify(one) === JSON.stringify(part),
  )

/** The number of values in lists of a condition, of which each request has one; `Infinity` without a list, or with a pattern. */
const countOf = (values: readonly (string | number)[] | undefined, open: RegExp) =>
  values && !values.some((value) => open.test(String(value)))
    ? values.length
    : Number.POSITIVE_INFINITY

const NONE = /^\b$/ // matches no text

/** The most different values of a key part among the requests of a condition. */
function valuesIn(part: KeyPart, { method, host, path, country, asn }: Condition): number {
  switch (part.source) {
    case 'global':
      return 1
    case 'method':
      return countOf(method, NONE)
    case 'host':
      return countOf(host, /^\*/)
    case 'path':
      return countOf(path, /\/:|\/\*$/)
    case 'country':
      return countOf(country, /^XX$/) // an unknown country is XX for conditions, and missing for keys
    case 'asn':
      return countOf(asn, NONE)
    case 'path-parameter':
      return countOf(path, /\/:|\/\*$/)
    default:
      return Number.POSITIVE_INFINITY
  }
}

/** The first part of a key that may have any number of values, or the number of counters. */
export function countersOf(
  key: KeyPart[],
  { match }: Pick<Policy, 'match'>,
  { request, per }: Pick<Expectation, 'request' | 'per'>,
): number | KeyPart {
  let count = 1
  for (const part of key) {
    if (isFixedBy(per, part)) continue
    const values = Math.min(valuesIn(part, request), valuesIn(part, match))
    if (values === Number.POSITIVE_INFINITY) return part
    count *= values
  }
  return count
}

/** True for a part that every request of the condition has. */
export function isAlwaysThere(part: KeyPart, { country, asn }: Condition): boolean {
  if (part.source === 'country') return country !== undefined && !country.includes('XX')
  if (part.source === 'asn') return asn !== undefined
  return ['global', 'method', 'host', 'path'].includes(part.source)
}
