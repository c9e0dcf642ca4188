import type { LocalAlgorithm } from './algorithm.ts'

/** State: when the number was right; [parts that the bucket lacks to be full: a token is `window` parts, and `limit` come back every ms]. */
export const tokenBucket: LocalAlgorithm = (now, { limit, window, burst }, cost, state) => {
  const at = Math.max(now, state?.time ?? now)
  const capacity = burst * window
  const missing = state ? Math.max(0, state.numbers[0]! - (at - state.time) * limit) : 0

  const fits = cost === 0 || (cost <= burst && missing + cost * window <= capacity)
  const after = fits ? missing + cost * window : missing
  /** ms until no more than so many parts are missing. */
  const wait = (parts: number, from: number) =>
    from > parts ? at - now + Math.ceil((from - parts) / limit) : 0
  const remaining = Math.max(0, Math.floor((capacity - after) / window))
  return {
    allowed: fits,
    remaining,
    retryAfterMs: fits ? 0 : cost > burst ? null : wait(capacity - cost * window, missing),
    resetAfterMs: wait(0, after),
    nextAfterMs: remaining < burst ? wait(capacity - (remaining + 1) * window, after) : 0,
    ...(after > missing && { state: { time: at, numbers: [after] } }),
  }
}
