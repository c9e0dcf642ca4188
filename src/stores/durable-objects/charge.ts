/**
 * Charges a window or a bucket. Takes and debts use the algorithms of the local store; lua/README.md defines refunds and debts. All
 * functions return the state after the change, `'none'` if no state is left, or `undefined` if nothing changes.
 */
import { MAX_PRODUCT } from '../../core/base/units.ts'
import {
  algorithms,
  bucketAt,
  type QuotaTerms,
  windowsAt,
  withFloor,
} from '../../core/connection/algorithms/index.ts'
import type { Limit, Terms } from '../../core/connection/store.ts'
import type { KeptState } from './record.ts'

type After = KeptState | 'none' | undefined

/** The algorithms whose states are in the record. */
export type InRecord = Exclude<Terms['algorithm'], 'sliding-log' | 'concurrency' | 'distinct'>

export function quotaOf({ terms, floor, period }: Limit): QuotaTerms {
  const smaller = withFloor(terms.algorithm, terms, floor)
  return period ? { ...smaller, period } : smaller
}

function charged(
  limit: Limit,
  quota: QuotaTerms,
  units: number,
  now: number,
  state?: KeptState,
): After {
  const decide = algorithms[limit.terms.algorithm as InRecord]
  const { state: after, resetAfterMs } = decide(now, quota, units, state)
  return after && { ...after, end: now + resetAfterMs }
}

/** Takes the cost of a limit. Changes nothing if it does not fit. */
export const taken = (limit: Limit, now: number, state: KeptState | undefined): After =>
  charged(limit, quotaOf(limit), limit.cost, now, state)

/** Charges units that were already used, up to a count and parts that are exact in a double. */
export function owed(limit: Limit, now: number, state: KeptState | undefined): After {
  const { terms, period, cost } = limit
  const { windowMs } = terms
  if (terms.algorithm === 'token-bucket') {
    const [time, missing] = bucketAt(terms, now, state)
    return bucketAfter(terms, now, time, missing, Math.min(MAX_PRODUCT, missing + cost * windowMs))
  }
  const isFixed = terms.algorithm === 'fixed-window'
  const most = isFixed ? Number.MAX_SAFE_INTEGER : Math.floor(MAX_PRODUCT / windowMs)
  const isSliding = terms.algorithm === 'sliding-window'
  const count = isSliding ? windowsAt(terms, now, state)[1] : (state?.numbers[0] ?? 0)
  // Twice the bound leaves room for the weighted units of the previous window.
  const quota = { ...terms, ...(period && { period }), limit: isFixed ? most : 2 * most }
  return charged(limit, quota, Math.max(0, Math.min(cost, most - count)), now, state)
}

export function refunded(
  limit: Limit,
  now: number,
  state: KeptState | undefined,
  decidedAt: number | undefined,
): After {
  if (!state) return undefined
  const { terms, cost } = limit
  const { algorithm, windowMs } = terms
  if (algorithm === 'token-bucket') {
    // A state that ends before the bucket is full at this rate was written by a faster plan.
    const isFaster = terms.limit * (state.end - state.time) < state.numbers[0]!
    if (isFaster && decidedAt !== undefined) return undefined
    const [time, missing] = bucketAt(terms, now, state)
    // No charge has more units, and the product is exact.
    const units = Math.min(cost, Math.floor(Number.MAX_SAFE_INTEGER / windowMs))
    // Without these units the bucket may have been full since the charge, and nothing would have flowed back.
    const flowed = decidedAt === undefined ? 0 : Math.max(0, time - decidedAt) * terms.limit
    const after = Math.max(0, missing - Math.max(0, units * windowMs - flowed))
    return bucketAfter(terms, now, time, missing, after, state.end)
  }
  const [start, count, ...previous] =
    algorithm === 'sliding-window'
      ? windowsAt(terms, now, state)
      : [state.time, ...(state.numbers as [number])]
  const left = Math.max(0, count - cost)
  if (left === count || (decidedAt !== undefined && decidedAt < start)) return undefined
  const windows = left > 0 ? 2 : previous[0] ? 1 : 0
  const isFixed = algorithm === 'fixed-window'
  const end = isFixed && left > 0 ? state.end : windows && start + windows * windowMs
  return until({ time: start, numbers: [left, ...previous], end }, now, state.end)
}

function bucketAfter(
  { limit }: Terms,
  now: number,
  time: number,
  missing: number,
  after: number,
  latest = Number.POSITIVE_INFINITY,
): After {
  if (after === missing) return undefined
  const end = after > 0 ? time + Math.ceil(after / limit) : 0
  return until({ time, numbers: [after], end }, now, latest)
}

/** A refund does not postpone the end of a state. */
function until(state: KeptState, now: number, latest: number): After {
  const end = Math.min(state.end, latest)
  return end > now ? { ...state, end } : 'none'
}
