export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2
}

/** The values between which the middle half lies: a spread that one bad round does not move. */
export function quartiles(values: number[]): [low: number, high: number] {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!
  return [at(0.25), at(0.75)]
}

/** The smallest value that at least this share of all does not exceed. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
}

/** A middle and how far single rounds were from it. */
export interface Spread {
  median: number
  min: number
  max: number
}

export function spread(values: number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}
