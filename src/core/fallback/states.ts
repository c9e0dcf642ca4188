import type { QuotaState } from '../base/decision.ts'
import type { QuotaTerms, State } from '../connection/algorithms/algorithm.ts'
import type { Terms } from '../connection/store.ts'

type Numbers = Pick<QuotaState, 'remaining' | 'resetAfterMs' | 'nextAfterMs'>

/**
 * Derives the state of a limit from a reply, so that an isolate can continue to count without the store. It is exact for a fixed window, and to
 * the millisecond for a token bucket. For a sliding window and log the used units are right, but may come back slightly early or late.
 * @param at the time of the reply by the isolate's clock, ms since the epoch
 * @returns `undefined` if the quota is full
 */
export function stateFrom(
  algorithm: Terms['algorithm'],
  numbers: Numbers,
  at: number,
  { limit, windowMs: window, burst }: Pick<QuotaTerms, 'limit' | 'windowMs' | 'burst'>,
): State | undefined {
  const { remaining, resetAfterMs } = numbers
  if (resetAfterMs === 0) return undefined
  const end = at + resetAfterMs
  switch (algorithm) {
    case 'fixed-window':
      return { time: end - window, end, numbers: [limit - remaining] }
    case 'token-bucket': {
      // `remaining` is exact. `resetAfterMs` may be too small: it never exceeds the remaining lifetime of the state.
      const least = (burst - remaining - 1) * window + 1
      // With 0 remaining, more than the burst may be missing: the burst was lowered, or another plan has a larger one.
      const most = remaining > 0 ? least + window - 1 : Number.POSITIVE_INFINITY
      return { time: at, numbers: [Math.min(most, Math.max(least, resetAfterMs * limit))] }
    }
    case 'sliding-window':
      return slidingWindowFrom(numbers, at, limit, window)
    case 'sliding-log': {
      const newest = end - window
      const oldest = Math.min(newest, at + numbers.nextAfterMs - window)
      const count = limit - remaining
      const step = count > 1 ? (newest - oldest) / (count - 1) : 0
      const times = Array.from({ length: count }, (_, n) => Math.round(oldest + n * step))
      return { time: newest, numbers: times }
    }
    default:
      return undefined
  }
}

/** A reply lacks the two counters. Assumes the largest previous one that fits the time until the next unit comes back. */
function slidingWindowFrom(
  { remaining, resetAfterMs, nextAfterMs }: Numbers,
  at: number,
  limit: number,
  window: number,
): State {
  const used = limit - remaining
  const left = resetAfterMs > window ? resetAfterMs - window : resetAfterMs
  const time = Math.round((at + left) / window - 1) * window // windows start at multiples of their length
  const most = Math.min(limit, Math.floor((used * window) / left))
  if (resetAfterMs <= window) return { time, numbers: [0, most] }
  if (nextAfterMs > left) return { time, numbers: [used, 0] } // no unit comes back within this window
  const previous = Math.min(most, Math.floor(window / Math.max(1, nextAfterMs)))
  const usedBefore = Math.min(used - 1, Math.ceil((previous * left) / window))
  return {
    time,
    numbers: [used - usedBefore, Math.min(previous, Math.floor((usedBefore * window) / left))],
  }
}

/** Refunds units that were taken at `takenAt`. A window that began later gets none, a bucket only what it has not refilled since. */
export function refunded(
  algorithm: Terms['algorithm'],
  state: State,
  { limit, windowMs }: Pick<QuotaTerms, 'limit' | 'windowMs'>,
  units: number,
  takenAt: number,
  now: number,
): State {
  const [first = 0, ...others] = state.numbers
  const notRefilled = Math.max(0, units * windowMs - Math.max(0, now - takenAt) * limit)
  switch (algorithm) {
    case 'token-bucket':
      return { ...state, numbers: [Math.max(0, first - notRefilled)] }
    case 'sliding-log': {
      const taken = new Set(
        state.numbers.flatMap((time, index) => (time === takenAt ? index : [])).slice(0, units),
      )
      return { ...state, numbers: state.numbers.filter((_, index) => !taken.has(index)) }
    }
    case 'distinct': // a value stays until its time is over
      return state
    default:
      return takenAt < state.time
        ? state
        : { ...state, numbers: [Math.max(0, first - units), ...others] }
  }
}
