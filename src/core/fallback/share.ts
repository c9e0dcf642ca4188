/** The share of a limit that one isolate admits without the store (`localShare`). */

import { capacityOf } from '../base/units.ts'
import type { QuotaTerms, State } from '../connection/algorithms/index.ts'
import type { Terms } from '../connection/store.ts'

/** The share in whole units, at least one, and its part of the floor. A cost that fits the whole limit is reduced to fit the share. */
export function shareOf(terms: Terms, cost: number, floor = 0) {
  const { algorithm, limit, burst, windowMs, align, localShare } = terms
  const cut = (units: number) => Math.max(1, Math.floor(units * localShare))
  const share: QuotaTerms = { limit: cut(limit), burst: cut(burst), windowMs, align }
  const capacity = capacityOf(algorithm, share)
  const kept = Math.min(capacity, Math.ceil(floor * localShare))
  const fits = cost + floor <= capacityOf(algorithm, terms)
  return { share, cost: fits ? Math.min(cost, Math.max(1, capacity - kept)) : cost, floor: kept }
}

/** Converts the state of the whole quota to a state of its share. The remaining units stay the same, up to the share. */
export function cutState(
  algorithm: Terms['algorithm'],
  state: State | undefined,
  whole: Pick<QuotaTerms, 'limit' | 'burst'>,
  share: QuotaTerms,
): State | undefined {
  const less = capacityOf(algorithm, whole) - capacityOf(algorithm, share)
  if (!state || less === 0) return state
  const [first = 0, second = 0] = state.numbers
  const withNumbers = (numbers: number[]) => ({ ...state, numbers })
  switch (algorithm) {
    case 'token-bucket':
      return withNumbers([Math.max(0, first - less * share.windowMs)])
    case 'sliding-log':
      return withNumbers(state.numbers.slice(less))
    case 'sliding-window': {
      // Subtract from the previous window first, then from the current one.
      const previous = Math.max(0, second - less)
      return withNumbers([Math.max(0, first - (less - (second - previous))), previous])
    }
    default:
      return withNumbers([Math.max(0, first - less)])
  }
}
