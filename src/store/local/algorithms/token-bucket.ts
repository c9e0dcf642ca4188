import type { Algorithm } from './algorithm.ts'

/** State: when the level was right; [level, in parts: a token is `window` parts, and `limit` come back every ms]. */
export const tokenBucket: Algorithm = (now, { limit, window, burst }, cost, state) => {
  const at = Math.max(now, state?.time ?? now)
  const capacity = burst * window
  const level = state ? Math.min(capacity, state.numbers[0]! + (at - state.time) * limit) : capacity

  const fits = cost === 0 || (cost <= burst && level >= cost * window)
  const after = fits ? level - cost * window : level
  /** ms until a level of so many parts. */
  const wait = (parts: number, from: number) =>
    from < parts ? at - now + Math.ceil((parts - from) / limit) : 0
  const remaining = Math.floor(after / window)
  return {
    allowed: fits,
    remaining,
    retryAfterMs: fits ? 0 : cost > burst ? null : wait(cost * window, level),
    resetAfterMs: wait(capacity, after),
    nextAfterMs: remaining < burst ? wait((remaining + 1) * window, after) : 0,
    ...(after < level && { state: { time: at, numbers: [after] } }),
  }
}
