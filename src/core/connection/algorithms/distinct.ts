import type { QuotaAlgorithm, QuotaTerms, State } from './algorithm.ts'

/** A value, and the time of its last use. */
interface Use {
  value: string | undefined
  /** ms since the epoch. Half a ms less for a value that was used again: a refund takes back a first use only. */
  time: number
}

/**
 * Counts different values, each from its last use. State: `time` is the time of the newest use; `numbers` has the time of each value, oldest
 * first, and `values` the values. A cost above the number of values must be free, but only the values are counted.
 */
export const distinct: QuotaAlgorithm = (now, { limit, windowMs, values = [] }, cost, state) => {
  const at = timeOf(state, now)
  const live = usesOf(state).filter(({ time }) => time > at - windowMs)
  const isOwn = ({ value }: Use) => cost > 0 && values.some((one) => one === value)
  const own = live.filter(isOwn)
  const others = live.filter((use) => !isOwn(use))
  const fits = cost <= own.length || others.length + cost <= limit
  const isCharged = fits && cost > 0
  const after = isCharged ? [...others, ...values.map(usedAt(at, own))].sort(byTime) : live
  const remaining = Math.max(0, limit - after.length)
  /** ms until n of these values no longer count. */
  const wait = (uses: Use[], n: number) => Math.ceil(uses[n - 1]?.time ?? at) + windowMs - now
  return {
    allowed: fits,
    remaining,
    retryAfterMs: fits ? 0 : cost > limit ? null : wait(others, others.length + cost - limit),
    resetAfterMs: after.length > 0 ? wait(after, after.length) : 0,
    nextAfterMs: remaining < limit ? wait(after, after.length + remaining + 1 - limit) : 0,
    ...(isCharged && { state: stateOf(at, after) }),
  }
}

/** The state without these values, as far as they count and were used once, at `decidedAt`. Defaults to any use. */
export function released(
  state: State,
  { windowMs, values = [] }: Pick<QuotaTerms, 'windowMs' | 'values'>,
  now: number,
  decidedAt?: number,
): State | undefined {
  const uses = usesOf(state)
  const after = timeOf(state, now) - windowMs
  const kept = uses.filter(
    ({ value, time }) =>
      !values.some((one) => one === value) || time !== (decidedAt ?? time) || time <= after,
  )
  return kept.length < uses.length ? stateOf(state.time, kept) : undefined
}

/** The time to decide at. The clock may have moved back. */
const timeOf = (state: State | undefined, now: number) =>
  Math.max(now, Math.ceil(state?.numbers.at(-1) ?? now))

const usesOf = (state: State | undefined): Use[] =>
  state?.numbers.map((time, index) => ({ time, value: state.values?.[index] })) ?? []

const usedAt = (at: number, own: Use[]) => (value: string) => ({
  value,
  time: own.some((use) => use.value === value) ? at - 0.5 : at,
})

const byTime = (one: Use, other: Use) => one.time - other.time

const stateOf = (time: number, uses: Use[]): State => ({
  time,
  numbers: uses.map((use) => use.time),
  values: uses.map(({ value }) => value!),
})
