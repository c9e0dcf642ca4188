export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2
}

/** The smallest value that is not exceeded by at least this share of the values. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
}

/** The median of the rounds, and the range of their middle half, which does not depend on a single bad round. */
export interface Spread {
  median: number
  low: number
  high: number
}

export function spread(values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const quarter = (sorted.length - 1) / 4
  return {
    median: median(values),
    low: sorted[Math.floor(quarter)]!,
    high: sorted[Math.ceil(3 * quarter)]!,
  }
}
