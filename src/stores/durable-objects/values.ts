/** The values of `distinct`, as rows of slots: the id is the digest of a value, and its end the time of its last use. */
import { distinct, released } from '../../core/connection/algorithms/distinct.ts'
import type { QuotaAlgorithm, State } from '../../core/connection/algorithms/index.ts'
import type { Limit, StoreState } from '../../core/connection/store.ts'
import { quotaOf } from './charge.ts'
import type { Slots } from './record.ts'

export function valuesOutcome(
  uses: readonly Slots[],
  limit: Limit,
  now: number,
  cost = limit.cost,
): ReturnType<QuotaAlgorithm> {
  return distinct(now, { ...quotaOf(limit), values: limit.values }, cost, stateOf(uses))
}

/** The numbers of a limit after its charge, or without one. A floor leaves the quota smaller for this request. */
export function valuesState(
  uses: readonly Slots[],
  limit: Limit,
  fits: boolean,
  now: number,
): Omit<StoreState, 'allowed'> {
  const { floor = 0 } = limit
  const { allowed: _, state: __, ...numbers } = valuesOutcome(uses, limit, now, 0)
  const whole = { ...limit, floor: 0 }
  const free = valuesOutcome(uses, whole, now, 0).remaining
  return {
    ...numbers,
    retryAfterMs: fits ? 0 : valuesOutcome(uses, limit, now).retryAfterMs,
    ...(floor > 0 && { reserved: Math.min(floor, free) }),
  }
}

export const takenValues = (uses: readonly Slots[], limit: Limit, now: number) =>
  usesOf(valuesOutcome(uses, limit, now).state)

export const releasedValues = (
  uses: readonly Slots[],
  { terms: { windowMs }, values }: Limit,
  now: number,
  decidedAt: number | undefined,
) => usesOf(released(stateOf(uses), { windowMs, values }, now, decidedAt))

const stateOf = (uses: readonly Slots[]): State => ({
  time: 0,
  numbers: uses.map(({ end }) => end),
  values: uses.map(({ id }) => id),
})

const usesOf = (state: State | undefined): Slots[] | undefined =>
  state?.numbers.map((end, index) => ({ id: state.values![index]!, end, count: 1 }))
