/** What a call asks for the sake of leases beside what it is asked itself, and what of its reply is whose. */

import type { QuotaState } from '../../base/decision.ts'
import type { Limit, StoreReply, StoreRequest } from '../store.ts'
import type { Lease, Units } from './lease.ts'

/** What a call of the script takes. */
const MAX_REQUESTS = 128

/** The leases of limits that have one, and how many units of each are under way with other calls. */
export type Leases = Map<Limit, { lease: Lease; underWay: number }>

/** What is spent here, and not asked: `spentAt` by the store's time, ms since the epoch; when the call is decided its window may be over. */
export type Lent = Map<Limit, Units & { spentAt: number }>

interface Part {
  limit: Limit
  count: number
}

/** A request of a call. */
export interface Sent {
  request: StoreRequest
  /** Of one that takes units for a lease: how many, and the limit of the request before it which is charged for itself. */
  more?: Part
  /** Of one that gives some back: how many, and the limit that brought it about. */
  back?: Part
}

/**
 * The requests as they are sent: without what is spent here; after each, for every lease, one that takes more, if the request itself
 * passes; and before them all what is left of earlier leases goes back.
 */
export function callFor(requests: StoreRequest[], leases: Leases, lent: Lent, now: number): Sent[] {
  const back: Sent[] = []
  const asked: Sent[] = []
  let room = MAX_REQUESTS - requests.length
  let taken = false
  for (const request of requests) {
    const limits = request.limits.filter((limit) => !lent.has(limit))
    if (limits.length === 0) continue
    taken ||= request.mode === 'take'
    // A follow whose take is not sent, since all of it is spent here, has passed as well.
    asked.push({ request: { ...request, ...(!taken && { mode: 'take' }), limits } as StoreRequest })
    for (const limit of limits) {
      const { lease, underWay = 0 } = leases.get(limit) ?? {}
      if (!lease || room < 2) continue
      room -= 2
      const unspent = lease.refund(now)
      if (unspent) {
        const { count, decidedAt } = unspent
        const limits = [{ ...limit, cost: count }]
        back.push({ request: { mode: 'refund', limits, decidedAt }, back: { limit, count } })
      }
      const count = lease.more(limit.cost, underWay, now)
      if (count > 0) {
        const limits = [{ ...limit, cost: count }]
        asked.push({ request: { mode: 'follow', limits }, more: { limit, count } })
      }
    }
  }
  return [...back, ...asked]
}

/** How each limit that was asked stands, and how many units more its lease was charged. */
export function brought(sent: Sent[], reply: StoreReply) {
  const states = new Map<Limit, QuotaState & { more: number }>()
  let passed = true
  sent.forEach(({ request: { mode, limits }, more, back }, index) => {
    const told = reply.states[index]!
    if (more) {
      const own = states.get(more.limit)!
      const [state] = told as [QuotaState]
      const { allowed, retryAfterMs } = own
      const count = passed && state.allowed ? more.count : 0
      states.set(more.limit, { ...state, allowed, retryAfterMs, more: count })
    } else if (!back) {
      limits.forEach((limit, at) => void states.set(limit, { ...told[at]!, more: 0 }))
      if (mode === 'take') passed = told.every(({ allowed }) => allowed)
    }
  })
  return states
}
