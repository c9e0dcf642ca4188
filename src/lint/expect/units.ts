/** The most units that an algorithm admits in any interval: the closed forms of docs/explanation/algorithms.md, for any length. */
import type { Policy } from '../../core/config/parse.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SHORTEST_DAYS = { day: 1, week: 7, month: 28 }

/** The shortest period of a calendar. A daylight-saving change may take an hour of it. */
const shortestMs = ({ unit, timeZone }: NonNullable<Policy['calendar']>) =>
  SHORTEST_DAYS[unit] * DAY_MS - (timeZone === 'UTC' ? 0 : HOUR_MS)

const ceilDiv = (one: bigint, other: bigint) => (one + other - 1n) / other
const greatest = (one: bigint, other: bigint) => (one > other ? one : other)

type CountedQuota = Pick<Policy, 'algorithm' | 'limit' | 'burst' | 'windowMs' | 'calendar'>

/** The most units in any half-open interval of `inMs`. `Infinity` for slots, which a request returns, and for values, which may be repeated. */
export function mostUnits(terms: CountedQuota, inMs: number): number {
  const { algorithm, calendar } = terms
  if (algorithm === 'concurrency' || algorithm === 'distinct') return Number.POSITIVE_INFINITY
  const [limit, burst, length] = [BigInt(terms.limit), BigInt(terms.burst), BigInt(inMs)]
  const window = BigInt(calendar ? shortestMs(calendar) : terms.windowMs)
  switch (algorithm) {
    // A window may end with the first millisecond of the interval, and the next one opens at once.
    case 'fixed-window':
      return Number(limit * (1n + ceilDiv(length - 1n, window)))
    // The whole limit in the last millisecond of a window; then it comes back with the time of the next windows.
    case 'sliding-window':
      return Number(limit + (limit * greatest(0n, length - 2n)) / window)
    case 'sliding-log':
      return Number(limit * ceilDiv(length, window))
    case 'token-bucket':
      return Number(burst + (limit * (length - 1n)) / window)
  }
}

/** A line above `mostUnits`: an interval of t ms admits at most `burst` + `perMs` × (t − 1) units. Not for slots. */
export function lineAbove(terms: CountedQuota): { burst: number; perMs: number } {
  const { algorithm, limit, burst, calendar, windowMs } = terms
  const perMs = limit / (calendar ? shortestMs(calendar) : windowMs)
  if (algorithm === 'token-bucket') return { burst, perMs }
  return { burst: algorithm === 'fixed-window' ? 2 * limit : limit, perMs }
}
