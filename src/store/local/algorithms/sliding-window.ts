import type { LocalAlgorithm } from './algorithm.ts'

/** State: start of the current window, a multiple of `window`; [units in it, units in the one before]. */
export const slidingWindow: LocalAlgorithm = (now, { limit, window }, cost, state) => {
  const at = Math.max(now, state?.time ?? now)
  const start = at - (at % window)
  const left = start + window - at
  const [current, previous] = shift(state, start, window)

  /** ms from `now` until so many units fit over so many in the current window. */
  const wait = (units: number, over: number): number => {
    if (previous * left + (over + units) * window <= limit * window) return 0
    const untilTheyFit =
      over + units <= limit
        ? left - Math.floor(((limit - over - units) * window) / previous)
        : left + window - Math.floor(((limit - units) * window) / over) // `over` is the next window's previous
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

/** The two counters as they stand in the window that began at `start`. */
function shift(
  state: { time: number; numbers: number[] } | undefined,
  start: number,
  window: number,
) {
  const [current = 0, previous = 0] = state?.numbers ?? []
  if (state?.time === start) return [current, previous] as const
  return state?.time === start - window ? ([0, current] as const) : ([0, 0] as const)
}
