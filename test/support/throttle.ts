import type { Limit, StoreState } from '../../src/store/store.ts'

/** `[limited, limit, remaining, retry_after, reset_after]`. `limited` is 0 or 1, and the times are in seconds. */
export type ThrottleReply = [number, number, number, number, number]

/**
 * Converts the state of a token bucket to a reply of redis-cell's `CL.THROTTLE key max_burst count period quantity`,
 * where burst = max_burst + 1, limit = count and window = period. Seconds are rounded up. `retry_after` is −1 if the
 * request passed, or if it can never pass.
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
