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

const NONE = /^\b$/ // matches no text

/** The fields of a condition that list values of which each request has one, with what matches a pattern for several. */
const OPEN = {
  method: NONE,
  host: /^\*/,
  path: /\/:|\/\*$/,
  country: /^XX$/, // an unknown country is XX for conditions, and missing for keys
  asn: NONE,
}

/** The most different values of a key part among the requests of a condition; `Infinity` without a list, or with a pattern. */
function valuesIn({ source }: KeyPart, condition: Condition): number {
  if (source === 'global') return 1
  const field = (source === 'path-parameter' ? 'path' : source) as keyof typeof OPEN
  const values = Object.hasOwn(OPEN, field) ? condition[field] : undefined
  return values && !values.some((value) => OPEN[field].test(String(value)))
    ? values.length
    : Number.POSITIVE_INFINITY
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
