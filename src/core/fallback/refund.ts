import type { QuotaTerms, State } from '../connection/algorithms/algorithm.ts'
import type { Terms } from '../connection/store.ts'

/**
 * Refunds units that were taken at `takenAt` (ms since the epoch). A window that began later gets no refund. A bucket gets only the part
 * that it has not refilled since.
 */
export function refunded(
  algorithm: Terms['algorithm'],
  state: State,
  { limit, windowMs }: Pick<QuotaTerms, 'limit' | 'windowMs'>,
  units: number,
  takenAt: number,
  now: number,
): State {
  const [first = 0, ...others] = state.numbers
  const notRefilled = Math.max(0, units * windowMs - Math.max(0, now - takenAt) * limit)
  switch (algorithm) {
    case 'token-bucket':
      return { ...state, numbers: [Math.max(0, first - notRefilled)] }
    case 'sliding-log': {
      const taken = new Set(
        state.numbers.flatMap((time, index) => (time === takenAt ? index : [])).slice(0, units),
      )
      return { ...state, numbers: state.numbers.filter((_, index) => !taken.has(index)) }
    }
    case 'distinct': // a value stays until its time is over
      return state
    default:
      return takenAt < state.time
        ? state
        : { ...state, numbers: [Math.max(0, first - units), ...others] }
  }
}
