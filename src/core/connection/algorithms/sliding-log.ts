import type { QuotaAlgorithm } from './algorithm.ts'

/** State: `time` is the time of the newest unit; `numbers` has the time of every unit, oldest first. */
export const slidingLog: QuotaAlgorithm = (now, { limit, windowMs }, cost, state) => {
  const at = Math.max(now, state?.time ?? now)
  const live = state?.numbers.filter((time) => time > at - windowMs) ?? []
  /** ms until the n-th oldest unit expires. Units of this charge expire after one window. */
  const expiresIn = (n: number) => (live[n - 1] ?? at) + windowMs - now

  const fits = cost === 0 || live.length + cost <= limit
  const count = fits ? live.length + cost : live.length
  const remaining = Math.max(0, limit - count)
  return {
    allowed: fits,
    remaining,
    retryAfterMs: fits ? 0 : cost > limit ? null : expiresIn(live.length + cost - limit),
    resetAfterMs: count > 0 ? expiresIn(count) : 0,
    nextAfterMs: remaining < limit ? expiresIn(count + remaining + 1 - limit) : 0,
    ...(count > live.length && {
      state: { time: at, numbers: [...live, ...new Array<number>(cost).fill(at)] },
    }),
  }
}
