import type { QuotaAlgorithm, QuotaTerms, State } from './algorithm.ts'

/** The start of the current window, its units and those of the window before. A clock that moves back does not return to an earlier one. */
export function windowsAt(
  { windowMs }: Pick<QuotaTerms, 'windowMs'>,
  now: number,
  state: State | undefined,
): [start: number, current: number, previous: number] {
  const at = Math.max(now, state?.time ?? now)
  const start = at - (at % windowMs)
  const [current = 0, previous = 0] = state?.numbers ?? []
  if (state?.time === start) return [start, current, previous]
  return [start, 0, state && start - state.time === windowMs ? current : 0]
}

/** State: `time` is the start of the current window, a multiple of `window`; `numbers` is [units in it, units in the window before]. */
export const slidingWindow: QuotaAlgorithm = (now, terms, cost, state) => {
  const { limit, windowMs: window } = terms
  const at = Math.max(now, state?.time ?? now)
  const [start, current, previous] = windowsAt(terms, now, state)
  const left = start + window - at

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
