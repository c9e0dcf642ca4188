/** Finds conditions that no request matches at the same time. Conservative: may miss a pair, never reports a false one. */
import { networkRange } from '../core/base/ip.ts'
import type { Condition } from '../core/config/schema/condition.ts'
import { CREDENTIALS } from '../core/config/schema/reads.ts'
import { normalizePath } from '../core/request/path.ts'
import { compareBytes, covers, hostCovers } from './covers.ts'

/**
 * Reports whether no request that may match `one` matches `other` however it is read. A request may match if an origin may read it so,
 * as a policy reads it; it matches for certain as an entry of `allow` reads it.
 */
export const disjoint = (one: Condition, other: Condition): boolean =>
  noneMeet(one.method, other.method, equal) ||
  noneMeet(one.country, other.country, equal) ||
  noneMeet(one.asn, other.asn, equal) ||
  noneMeet(one.ip, other.ip, networksMeet) ||
  noneMeet(one.host, other.host, hostsMeet) ||
  noneMeet(one.path, other.path, pathsMeet) ||
  noneMeet(one.ja4, other.ja4, textsMeet) ||
  namedApart(one.header, other.header) ||
  namedApart(one.query, other.query) ||
  botsApart(one.verifiedBot, other.verifiedBot) ||
  scoresApart(one.botScore, other.botScore) ||
  // A credential that is not valid may match either, but neither for certain.
  CREDENTIALS.some((field) => noneMeet(listOf(one[field]), listOf(other[field]), equal)) ||
  (one.not ?? []).some((excluded) => covers(excluded, other)) ||
  (other.not ?? []).some((excluded) => covers(excluded, one))

const listOf = <T>(one: T | undefined) => (one === undefined ? undefined : [one])

const equal = <T>(one: T, other: T) => one === other

/** For fields of which a request matches any one value. */
const noneMeet = <T>(
  ones: T[] | undefined,
  others: T[] | undefined,
  meet: (one: T, other: T) => boolean,
) =>
  ones !== undefined &&
  others !== undefined &&
  !ones.some((one) => others.some((other) => meet(one, other)))

function networksMeet(one: string, other: string): boolean {
  const [[first, last], [otherFirst, otherLast]] = [networkRange(one)!, networkRange(other)!]
  return compareBytes(first, otherLast) <= 0 && compareBytes(otherFirst, last) <= 0
}

const hostsMeet = (one: string, other: string) => hostCovers(one, other) || hostCovers(other, one)

/** A text with `*`, or with a comma, which may be one of several values of a header, may be any text. */
const isExact = (text: string) => !/[*,]/.test(text)

const textsMeet = (one: string, other: string) => one === other || !isExact(one) || !isExact(other)

const namedApart = (ones: Condition['header'] = [], others: Condition['header'] = []) =>
  ones.some(({ name, values }) =>
    others.some((other) => other.name === name && noneMeet(values, other.values, textsMeet)),
  )

/** The segments of a pattern; `undefined` for a parameter. */
function segmentsOf(pattern: string): (string | undefined)[] {
  return pattern
    .replace(/\/\*?$/, '')
    .split('/')
    .slice(1)
    .map((segment) => {
      const text = normalizePath(`/${segment}`).toLowerCase()
      return segment.startsWith(':') || !/^\/[^/]+$/.test(text) ? undefined : text
    })
}

/** A segment `.` or `..` of a pattern is none of a path. */
const hasDots = (pattern: string) => /\/\.\.?(?:\/|$)/.test(pattern)

function pathsMeet(one: string, other: string): boolean {
  if (hasDots(one) || hasDots(other)) return true
  const [ones, others] = [segmentsOf(one), segmentsOf(other)]
  if (ones.some((text, index) => text && others[index] && text !== others[index])) return false
  if (ones.length === others.length) return true
  return (ones.length < others.length ? one : other).endsWith('/*')
}

function botsApart(one: Condition['verifiedBot'], other: Condition['verifiedBot']): boolean {
  if (one === undefined || other === undefined) return false
  if (Array.isArray(one) && Array.isArray(other)) return noneMeet(one, other, equal)
  return (one === false) !== (other === false)
}

function scoresApart(one: Condition['botScore'], other: Condition['botScore']): boolean {
  if (!one || !other) return false
  const from = Math.max(one.atLeast ?? 1, other.atLeast ?? 1)
  return from >= Math.min(one.below ?? 100, other.below ?? 100)
}
