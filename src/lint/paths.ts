import { normalizePath } from '../request/path.ts'

/** A path pattern in pieces, of the meaning that `pathMatcher` gives it. */
interface Pattern {
  /** What each segment has to be; `undefined` where it may be anything. */
  segments: (string | undefined)[]
  /** Whether all below it is meant as well. */
  below: boolean
}

const parsed = new Map<string, Pattern>() // each is asked about often

function parse(text: string): Pattern {
  const pattern = parsed.get(text) ?? pieces(text)
  parsed.set(text, pattern)
  return pattern
}

function pieces(text: string): Pattern {
  const segments = text
    .replace(/\/\*?$/, '')
    .split('/')
    .slice(1)
    .flatMap((segment) =>
      segment.startsWith(':') ? [undefined] : normalizePath(`/${segment}`).split('/').slice(1),
    )
  // A pattern that is nothing but "." is the root, and nothing below it.
  if (segments.length === 1 && segments[0] === '') return { segments: [], below: false }
  return { segments, below: text.endsWith('/*') }
}

/** Whether no path is ever seen so: `/a/../b`, `/a/;x` (what is seen has neither). */
export const isDeadPattern = (text: string): boolean => parse(text).segments.includes('')

/** Whether a pattern covers another: every path of `inner` is one of `outer`. */
export function patternCovers(outer: string, inner: string, caseSensitive: boolean): boolean {
  if (isDeadPattern(inner)) return true
  const [o, i] = [parse(outer), parse(inner)]
  const long = i.segments.length - o.segments.length
  if (o.below ? long < 0 : i.below || long !== 0) return false
  return o.segments.every((segment, index) => {
    const other = i.segments[index]
    return segment === undefined || (other !== undefined && same(segment, other, caseSensitive))
  })
}

/** Whether two patterns have no path in common. */
export function patternsApart(one: string, other: string, caseSensitive: boolean): boolean {
  if (isDeadPattern(one) || isDeadPattern(other)) return true
  const [a, b] = [parse(one), parse(other)]
  const longer = a.segments.length - b.segments.length
  if ((longer < 0 && !a.below) || (longer > 0 && !b.below)) return true
  return a.segments.some((segment, index) => {
    const beside = b.segments[index]
    return segment !== undefined && beside !== undefined && !same(segment, beside, caseSensitive)
  })
}

/** Letter case by the rules of the expressions that `pathMatcher` makes, which are not those of `toLowerCase`. */
const same = (one: string, other: string, caseSensitive: boolean) =>
  one === other ||
  (!caseSensitive &&
    one.length === other.length &&
    new RegExp(`^${one.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`, 'is').test(other))
