import type { Period } from '../../base/calendar.ts'
import type { QuotaState } from '../../base/decision.ts'
import { floorUnits } from '../../base/units.ts'
import type { Limit, Terms } from '../store.ts'

/** The terms of a quota. All numbers are whole and within `largestQuota`. */
export interface QuotaTerms extends Pick<Terms, 'limit' | 'windowMs' | 'burst' | 'align'> {
  /** The current period of a calendar window and the next one. Fixed windows only. */
  period?: Period | undefined
  /** The values of the request. Only for `distinct`. */
  values?: readonly string[] | undefined
}

/** The stored state of one limit. */
export interface State {
  /** The time of the numbers, ms since the epoch. */
  time: number
  /** Each algorithm documents its own numbers. */
  numbers: number[]
  /** The value of each number. Only for `distinct`. */
  values?: readonly string[]
  /** The end of a fixed window, ms since the epoch. Defaults to one window after `time`. */
  end?: number
}

/**
 * Charges `cost` units (≥ 0) at `now` to the state of one limit, as docs/explanation/algorithms.md describes. No I/O. The result is the
 * quota after the charge, with its `state` if that has changed. The local store
 * decides with it. For a reply of the script, which charges by itself, it computes the numbers from the stored state.
 *
 * The caller drops a state once it expires (`now + resetAfterMs`). If the clock was set back, the algorithm uses the time of the state,
 * while waits count from `now`.
 */
export type QuotaAlgorithm = (
  now: number,
  terms: QuotaTerms,
  cost: number,
  state?: State,
) => QuotaState & { state?: State }

type Sized = Pick<QuotaTerms, 'limit' | 'burst'>

/**
 * Terms of a smaller quota with the same state. A cost leaves `floor` units free if it fits in these terms, because only the comparison
 * of a cost with the quota depends on its size.
 */
export function withFloor<T extends Sized>(
  algorithm: Terms['algorithm'],
  terms: T,
  floor: number | undefined,
): T {
  if (!floor) return terms
  return algorithm === 'token-bucket'
    ? { ...terms, burst: terms.burst - floor }
    : { ...terms, limit: terms.limit - floor }
}

/** A limit in the size that an operator has set, if any. */
export function resized<L extends Pick<Limit, 'terms' | 'floor' | 'override'>>(
  limit: L,
  units: number | undefined,
): L {
  const { terms, override } = limit
  if (units === undefined || !override) return limit
  const { share, scalesBurst } = override
  const sized = { ...terms, limit: units, burst: scalesBurst ? units : terms.burst }
  const isSame = terms.algorithm === 'token-bucket' && !scalesBurst
  return { ...limit, terms: sized, floor: isSame ? (limit.floor ?? 0) : floorUnits(sized, share) }
}

/**
 * Shortens the waits of an outcome to the rest of its state's life, ms. From the run-out of the state on, the whole quota is available,
 * even if the terms have changed since the charge.
 */
export function endingIn<S extends QuotaState>(restMs: number, outcome: S): S {
  const { retryAfterMs, resetAfterMs, nextAfterMs } = outcome
  return {
    ...outcome,
    retryAfterMs: retryAfterMs === null ? null : Math.min(retryAfterMs, restMs),
    resetAfterMs: Math.min(resetAfterMs, restMs),
    nextAfterMs: Math.min(nextAfterMs, restMs),
  }
}
