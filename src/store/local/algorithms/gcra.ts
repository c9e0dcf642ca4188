import type { Algorithm } from './algorithm.ts'

/** State: when the debt was right; [debt, in parts: a unit is `window` parts, and `limit` drain every ms]. */
export const gcra: Algorithm = (now, { limit, window, burst }, cost, state) => {
  const at = Math.max(now, state?.time ?? now)
  const capacity = burst * window
  const debt = state ? Math.max(0, state.numbers[0]! - (at - state.time) * limit) : 0

  const fits = cost === 0 || (cost <= burst && debt + cost * window <= capacity)
  const after = fits ? debt + cost * window : debt
  /** ms until a debt of so many parts. */
  const wait = (parts: number, from: number) =>
    from > parts ? at - now + Math.ceil((from - parts) / limit) : 0
  const remaining = Math.max(0, Math.floor((capacity - after) / window))
  return {
    allowed: fits,
    remaining,
    retryAfterMs: fits ? 0 : cost > burst ? null : wait(capacity - cost * window, debt),
    resetAfterMs: wait(0, after),
    nextAfterMs: remaining < burst ? wait(capacity - (remaining + 1) * window, after) : 0,
    ...(after > debt && { state: { time: at, numbers: [after] } }),
  }
}
