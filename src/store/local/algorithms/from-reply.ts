import type { QuotaState } from '../../../base/decision.ts'
import type { Terms } from '../../store.ts'
import type { QuotaTerms, State } from './algorithm.ts'

type Numbers = Pick<QuotaState, 'remaining' | 'resetAfterMs' | 'nextAfterMs'>

/**
 * Derives the state of a limit from a reply, so that an isolate can continue to count without the store. Exact for a fixed window; to
 * the millisecond for the bucket; for the sliding window and the log an estimate that has the right use now, and may return it a little
 * early or late.
 * @param at when the numbers held, ms since the epoch by the isolate's clock
 * @returns `undefined` for a full quota
 */
export function stateFrom(
  algorithm: Terms['algorithm'],
  numbers: Numbers,
  at: number,
  { limit, window, burst }: Pick<QuotaTerms, 'limit' | 'window' | 'burst'>,
): State | undefined {
  const { remaining, resetAfterMs } = numbers
  if (resetAfterMs === 0) return undefined
  const end = at + resetAfterMs
  switch (algorithm) {
    case 'fixed-window':
      return { time: end - window, end, numbers: [limit - remaining] }
    case 'token-bucket': {
      // The reply's `remaining` is exact; its wait may have been cut short by the run-out of the state.
      const least = (burst - remaining - 1) * window + 1
      // Without a unit remaining, more than the burst may be missing: it was lowered, or another plan's is larger.
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

/**
 * The reply has the use and the end of the window, but not how the use divides between the two counters. The previous one is assumed to
 * be as large as the next unit's return allows.
 */
function slidingWindowFrom(
  { remaining, resetAfterMs, nextAfterMs }: Numbers,
  at: number,
  limit: number,
  window: number,
): State {
  const used = limit - remaining
  const left = resetAfterMs > window ? resetAfterMs - window : resetAfterMs
  const time = Math.round((at + left) / window - 1) * window // windows begin at multiples of their length
  const most = Math.min(limit, Math.floor((used * window) / left))
  if (resetAfterMs <= window) return { time, numbers: [0, most] }
  if (nextAfterMs > left) return { time, numbers: [used, 0] } // nothing comes back within this window
  const previous = Math.min(most, Math.floor(window / Math.max(1, nextAfterMs)))
  const usedBefore = Math.min(used - 1, Math.ceil((previous * left) / window))
  return {
    time,
    numbers: [used - usedBefore, Math.min(previous, Math.floor((usedBefore * window) / left))],
  }
}
