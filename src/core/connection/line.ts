/** The lines of limits with `wait`. lua/README.md, "Lines", is the contract. */
import type { QuotaState } from '../base/decision.ts'
import type { Limit, StoreRequest, Ticket } from './store.ts'

/** The ticket of a request that only asks: it stands behind all others. */
const LAST: Ticket = { id: 'zz', leftMs: 0, waitedMs: 0 }

/** The ticket of a request, with which it asks for its place in lines. */
export const ticketOf = (request: StoreRequest): Ticket =>
  ('ticket' in request && request.ticket) || LAST

/** True if a request stands in the line of a limit, or asks how long that is. */
export function standsIn(request: StoreRequest, { terms, cost }: Limit): boolean {
  const { mode } = request
  if (terms.wait === undefined) return false
  if (mode === 'reset') return true
  if (cost === 0) return false
  return mode === 'peek' || ((mode === 'take' || mode === 'leave') && request.ticket !== undefined)
}

/** The limit that leaves the units of earlier tickets free. */
export const behind = <L extends Limit>(limit: L, ahead: number): L => ({
  ...limit,
  floor: (limit.floor ?? 0) + ahead,
})

/**
 * The state of a limit in whose line the request stands.
 * @param state that of the limit `behind` the tickets before it
 * @param turnMs the time until its turn, `null` if there is none
 */
export function inLine(
  { floor = 0 }: Limit,
  { reserved = 0, ...state }: QuotaState,
  turnMs: number | null,
): QuotaState {
  const answer = state.allowed ? state : { ...state, retryAfterMs: turnMs }
  // The requests before it need the whole quota.
  if (answer.remaining === 0 && answer.nextAfterMs === 0)
    answer.nextAfterMs = (answer.allowed ? answer.resetAfterMs : turnMs) ?? 0
  return floor ? { ...answer, reserved: Math.min(floor, answer.remaining + reserved) } : answer
}
