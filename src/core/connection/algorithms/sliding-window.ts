import type { QuotaAlgorithm } from './algorithm.ts'

/** State: `time` is the start of the current window, a multiple of `window`; `numbers` is [units in it, units in the window before]. */
export const slidingWindow: QuotaAlgorithm = (now, { limit, windowMs: window }, cost, state) => {
  const at = Math.max(now, state?.time ?? now)
  const start = at - (at % window)
  const left = start + window - at
  const [first = 0, second = 0] = state?.numbers ?? []
  const age = state ? start - state.time : 0
  const current = age === 0 ? first : 0
  const previous = age === 0 ? second : age === window ? first : 0

  /** ms from `now` until `units` fit, with `used` units in the current window. */
  const wait = (units: number, used: number): number => {
    if (previous * left + (used + units) * window <= limit * window) return 0
    const untilTheyFit =
      used + units <= limit
        ? left - Math.floor(((limit - used - units) * window) / previous)
        : left + window - Math.floor(((limit - units) * window) / used) // in the next window, `used` is the previous counter
    return at - now + untilTheyFit
  }

  const retryAfterMs = cost === 0 ? 0 : cost > limit ? null : wait(cost, current)
  const allowed = retryAfterMs === 0
  const count = allowed ? current + cost : current
  const remaining = Math.max(0, limit - count - Math.ceil((previous * left) / window))
  const fullIn = count > 0 ? left + window : previous > 0 ? left : 0
  return {
    allowed,
    remaining,
    retryAfterMs,
    resetAfterMs: fullIn > 0 ? at - now + fullIn : 0,
    nextAfterMs: remaining < limit ? wait(remaining + 1, count) : 0,
    ...(count > current && { state: { time: start, numbers: [count, previous] } }),
  }
}
