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
