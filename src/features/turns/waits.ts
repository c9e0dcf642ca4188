/** What a store does with a request that may wait. */
import { hasOwnKey } from '../../core/base/own-key.ts'
import type { Limit, StoreRequest, StoreState } from '../../core/connection/store.ts'

/** True if a limit may hold its request. */
export const waits = ({ terms, cost }: Limit): boolean => terms.wait !== undefined && cost > 0

/** True if a request may be held. */
export const mayWait = ({ mode, limits }: StoreRequest): boolean =>
  mode === 'take' && limits.some(waits)

/** The longest time for which a request may be held, ms: the shortest of its limits. */
export const longestWait = (limits: Limit[]): number =>
  Math.min(...limits.filter(waits).map(({ terms }) => terms.wait!))

/**
 * The state of a limit in a reply, by the place of its request.
 * @param state with the waits of its charge at the place, or without a charge
 * @param place ms since the epoch, `null` if the cost never fits
 * @param isTaken true if all limits of the request were charged
 */
export function placed(
  state: StoreState,
  { terms, cost }: Limit,
  place: number | null,
  now: number,
  wait: number,
  isTaken: boolean,
): StoreState {
  if (place === null) return { ...state, allowed: false, retryAfterMs: null }
  const waitMs = place - now
  if (waitMs > wait) {
    const { bannedForMs = 0 } = state
    return { ...state, allowed: false, retryAfterMs: Math.max(waitMs, bannedForMs) }
  }
  if (waitMs === 0 || cost === 0) return state
  const later = (ms: number) => (ms > 0 ? ms + waitMs : 0)
  const own = hasOwnKey(terms.algorithm)
    ? {
        ...state,
        resetAfterMs: later(state.resetAfterMs),
        nextAfterMs: later(state.nextAfterMs),
      }
    : state
  return isTaken ? { ...own, waitMs, decidedAt: place } : own
}
