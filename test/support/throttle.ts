import type { Limit, StoreState } from '../../src/store/store.ts'

/** `[limited, limit, remaining, retry_after, reset_after]`: limited is 0 or 1, the times are seconds. */
export type ThrottleReply = [number, number, number, number, number]

/**
 * A token bucket's decision as redis-cell's `CL.THROTTLE key max_burst count period quantity` tells it, where
 * burst = max_burst + 1, limit = count and window = period. Seconds are rounded up; retry_after is −1
 * when the request passed, and when it never can.
 * @example
 * toThrottleReply(state, { burst: 16 }) // [0, 16, 15, -1, 2]
 */
export function toThrottleReply(
  { allowed, remaining, retryAfterMs, resetAfterMs }: StoreState,
  { burst }: Pick<Limit['terms'], 'burst'>,
): ThrottleReply {
  const retryAfter = allowed || retryAfterMs === null ? -1 : Math.ceil(retryAfterMs / 1000)
  return [allowed ? 0 : 1, burst, remaining, retryAfter, Math.ceil(resetAfterMs / 1000)]
}
