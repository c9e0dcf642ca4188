import type { Peaks } from '../report/types.ts'

const CURVE_POINTS = 120

/** @param sorted the peaks of all keys in ascending order, at least one */
export function distributionOf(windowMs: number, sorted: Uint32Array): Peaks {
  const max = sorted.at(-1)!
  // The nearest rank. The product of a share and a number may be a little too large.
  const quantile = (p: number) => sorted[Math.max(0, Math.ceil(p * sorted.length - 1e-9) - 1)]!
  return {
    windowMs,
    p50: quantile(0.5),
    p90: quantile(0.9),
    p99: quantile(0.99),
    p999: quantile(0.999),
    max,
    curve: limitsUpTo(max).map((limit) => ({ limit, keys: above(sorted, limit) })),
  }
}

/**
 * The smallest limit that refuses at most this share of the keys.
 * @param share 0 to 1
 */
export function limitFor(sorted: Uint32Array, share: number): number {
  const refused = Math.min(sorted.length - 1, Math.floor(share * sorted.length + 1e-9))
  return sorted[sorted.length - 1 - refused]!
}

/** The number of peaks above a limit: the keys that it refuses. */
export function above(sorted: Uint32Array, limit: number): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! > limit) high = middle
    else low = middle + 1
  }
  return sorted.length - low
}

/** Limits from 1 to the maximum, at even distances on a logarithmic scale. */
function limitsUpTo(max: number): number[] {
  const limits = Array.from({ length: CURVE_POINTS }, (_, index) =>
    Math.round(Math.max(1, max) ** (index / (CURVE_POINTS - 1))),
  )
  return [...new Set(limits)]
}

/** Two neighbouring peaks: a limit between them admits all keys up to `below`. `above` is null if no key has a higher peak. */
export interface Gap {
  below: number
  above: number | null
}

/** A gap this wide separates clients of different kinds: the higher peak is at least so many times the lower one. */
const WIDE = 4
/** With few keys, the most that a wide gap may refuse, if they are at most a tenth of all. */
const FEW = 3

/**
 * The gap for a limit that refuses at most a share of the keys. If the share is the default and less than one key, the widest gap below
 * the highest keys, if it is wide enough: with 20 keys and the peaks 3, 34 and 1,555 the one below 1,555.
 * @param share 0 to 1
 */
export function gapFor(sorted: Uint32Array, share: number, isDefault: boolean): Gap {
  const gapAt = (refused: number): Gap => {
    const below = sorted[sorted.length - 1 - refused]!
    return { below, above: next(sorted, below) }
  }
  const byShare = { below: limitFor(sorted, share), above: next(sorted, limitFor(sorted, share)) }
  if (!isDefault || share * sorted.length >= 1) return byShare
  const few = Math.min(FEW, Math.floor(sorted.length / 10))
  const widest = Array.from({ length: few }, (_, index) => gapAt(index + 1))
    .filter(({ below, above }) => above !== null && above >= WIDE * below)
    .sort((one, other) => other.above! / other.below - one.above! / one.below)[0]
  return widest ?? byShare
}

/** The smallest peak above a limit. */
function next(sorted: Uint32Array, limit: number): number | null {
  const count = above(sorted, limit)
  return count === 0 ? null : sorted[sorted.length - count]!
}

/** Headroom above the highest peak, if no higher one bounds it. */
const HEADROOM = 1.5

/** A limit inside a gap, so that clients at its lower end keep room: about as many times the one as the other is it. */
export function limitInside({ below, above }: Gap): number {
  const wanted = above === null ? HEADROOM * below : Math.sqrt(below * above)
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(wanted)) - 1)
  const round = Math.round(wanted / unit) * unit // two digits
  const most = above === null ? round : above - 1
  return Math.max(below, Math.min(round, most))
}
