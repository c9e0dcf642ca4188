import type { QuotaAlgorithm, QuotaTerms, State } from './algorithm.ts'

/** The time of a bucket and its missing parts. */
export function bucketAt(
  { limit }: Pick<QuotaTerms, 'limit'>,
  now: number,
  state: State | undefined,
): [time: number, missing: number] {
  if (!state) return [now, 0]
  const time = Math.max(now, state.time)
  return [time, Math.max(0, state.numbers[0]! - (time - state.time) * limit)]
}

/** State: `time` is the time of the number; `numbers` is [missing parts]. A token is `window` parts; `limit` parts refill each ms. */
export const tokenBucket: QuotaAlgorithm = (now, terms, cost, state) => {
  const { limit, windowMs: window, burst } = terms
  const capacity = burst * window
  const [at, missing] = bucketAt(terms, now, state)
  const fits = cost === 0 || (cost <= burst && missing + cost * window <= capacity)
  const after = fits ? missing + cost * window : missing
  /** ms until at most `target` parts are missing, if `current` parts are missing now. */
  const wait = (target: number, current: number) =>
    current > target ? at - now + Math.ceil((current - target) / limit) : 0
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
