/** What conditions have to do with each other. Never claimed where it might not be so; unclaimed, now and then, where it is. */
import { compareAddresses, lastFrom, mergedRanges, type Range } from '../base/ip.ts'
import type { Condition } from '../config/schema/condition.ts'
import { isDeadPattern, patternCovers, patternsApart } from './paths.ts'

export interface PathOptions {
  caseSensitivePaths: boolean
}

/** Whether a condition covers another: every request that meets `inner` meets `outer`. */
export function covers(outer: Condition, inner: Condition, options: PathOptions): boolean {
  const within = <T>(
    wide: T[] | undefined,
    narrow: T[] | undefined,
    test: (wide: T, narrow: T) => boolean,
  ) => !wide || (narrow?.every((one) => wide.some((other) => test(other, one))) ?? false)
  const equal = (one: string, other: string) => one === other
  const { caseSensitivePaths } = options

  return (
    within(outer.method, inner.method, equal) &&
    within(outer.country, inner.country, equal) &&
    within(outer.host, inner.host, hostCovers) &&
    within(outer.path, inner.path ?? ['/*'], (wide, narrow) =>
      patternCovers(wide, narrow, caseSensitivePaths),
    ) &&
    (outer.header ?? []).every(({ name, values }) =>
      (inner.header ?? []).some(
        (other) => other.name === name && within(values, other.values, textCovers),
      ),
    ) &&
    (!outer.ip || (inner.ip !== undefined && networksCover(outer.ip, inner.ip))) &&
    (outer.not ?? []).every((taken) => apart(taken, inner, options))
  )
}

/** Whether no request meets both. */
export function apart(one: Condition, other: Condition, options: PathOptions): boolean {
  const differ = <T>(
    some: T[] | undefined,
    others: T[] | undefined,
    test: (one: T, other: T) => boolean,
  ) =>
    some !== undefined && others !== undefined && some.every((a) => others.every((b) => test(a, b)))
  const unequal = (a: string, b: string) => a !== b

  return (
    differ(one.method, other.method, unequal) ||
    differ(one.country, other.country, unequal) ||
    differ(one.host, other.host, (a, b) => !hostCovers(a, b) && !hostCovers(b, a)) ||
    differ(one.path, other.path ?? ['/*'], (a, b) =>
      patternsApart(a, b, options.caseSensitivePaths),
    ) ||
    differ(other.path, ['/*'], (a, b) => patternsApart(a, b, options.caseSensitivePaths)) ||
    (one.ip !== undefined && other.ip !== undefined && networksApart(one.ip, other.ip)) ||
    (one.not ?? []).some((taken) => covers(taken, other, options)) ||
    (other.not ?? []).some((taken) => covers(taken, one, options))
  )
}

/** Whether every request that meets a condition meets at least one of others. */
export function coveredBy(condition: Condition, others: Condition[], options: PathOptions) {
  const single = (one: Condition) => others.some((other) => covers(other, one, options))
  return single(condition) || (others.length > 1 && pieces(condition).every(single))
}

/** Whether no request meets a condition. */
export function isImpossible(condition: Condition, options: PathOptions): boolean {
  const { not = [], ...rest } = condition
  return (
    (rest.path?.every(isDeadPattern) ?? false) || coveredBy(condition, not, options) // what is left of it is nothing
  )
}

const MAX_PIECES = 256

/** A condition cut up into those that have one method, host, path, country and network each; whole where that were too many. */
function pieces(condition: Condition): Condition[] {
  const fields = ['method', 'host', 'path', 'country', 'ip'] as const
  const count = fields.reduce((product, field) => product * (condition[field]?.length ?? 1), 1)
  if (count > MAX_PIECES) return [condition]
  return fields.reduce<Condition[]>(
    (cut, field) =>
      cut.flatMap((one) => one[field]?.map((value) => ({ ...one, [field]: [value] })) ?? [one]),
    [condition],
  )
}

/** `*.example.com` covers `*.eu.example.com` and `www.example.com`. */
const hostCovers = (wide: string, narrow: string) =>
  wide === narrow || (wide.startsWith('*.') && narrow.endsWith(wide.slice(1)))

/** Of header values, with `*` at either end for anything. */
function textCovers(wide: string, narrow: string): boolean {
  const [open, close] = [wide.startsWith('*'), wide.endsWith('*')]
  const [text, other] = [wide, narrow].map((pattern) => pattern.replace(/^\*|\*$/g, ''))
  if (open && close) return other!.includes(text!)
  if (close) return !narrow.startsWith('*') && other!.startsWith(text!)
  if (open) return !narrow.endsWith('*') && other!.endsWith(text!)
  return wide === narrow
}

function networksCover(wide: string[], narrow: string[]): boolean {
  const ranges = rangesOf(wide)
  return rangesOf(narrow).every(([first, last]) => {
    const before = lastFrom(ranges, first)
    return before !== undefined && compareAddresses(last, before[1]) <= 0
  })
}

function networksApart(some: string[], others: string[]): boolean {
  const ranges = rangesOf(some)
  return rangesOf(others).every(([first, last]) => {
    const before = lastFrom(ranges, last)
    return before === undefined || compareAddresses(before[1], first) < 0
  })
}

const merged = new WeakMap<string[], Range[]>() // lists may have ten thousand, and be asked about often

function rangesOf(networks: string[]): Range[] {
  const ranges = merged.get(networks) ?? mergedRanges(networks)
  merged.set(networks, ranges)
  return ranges
}
