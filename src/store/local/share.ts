/** The share of a limit that one isolate admits without the store (`localShare`). */
import type { Terms } from '../store.ts'
import type { QuotaTerms, State } from './algorithms/index.ts'

type Amounts = Pick<QuotaTerms, 'limit' | 'burst'>

/** The largest cost that a full quota admits. */
export const capacityOf = (algorithm: Terms['algorithm'], { limit, burst }: Amounts): number =>
  algorithm === 'token-bucket' ? burst : limit

/** The share in whole units, at least one. A cost that fits the whole limit is reduced to fit the share. */
export function shareOf(terms: Terms, cost: number): { share: QuotaTerms; cost: number } {
  const { algorithm, limit, burst, windowMs, align, localShare } = terms
  const cut = (units: number) => Math.max(1, Math.floor(units * localShare))
  const share: QuotaTerms = { limit: cut(limit), burst: cut(burst), window: windowMs, align }
  const fits = cost <= capacityOf(algorithm, terms)
  return { share, cost: fits ? Math.min(cost, capacityOf(algorithm, share)) : cost }
}

/** Converts the state of the whole quota to a state of its share. The remaining units stay the same, up to the share. */
export function cutState(
  algorithm: Terms['algorithm'],
  state: State | undefined,
  whole: Amounts,
  share: QuotaTerms,
): State | undefined {
  const less = capacityOf(algorithm, whole) - capacityOf(algorithm, share)
  if (!state || less === 0) return state
  const [first = 0, second = 0] = state.numbers
  const withNumbers = (numbers: number[]) => ({ ...state, numbers })
  switch (algorithm) {
    case 'token-bucket':
      return withNumbers([Math.max(0, first - less * share.window)])
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
