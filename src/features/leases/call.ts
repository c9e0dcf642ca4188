/** A call that takes leased units in advance: builds its requests, registers it as in flight, and divides its reply. */
import type { QuotaState } from '../../core/base/decision.ts'
import type { Limit, StoreReply, StoreRequest } from '../../core/connection/store.ts'
import { LeaseCall, type LeasedLimits, unitsInFlight } from './in-flight.ts'
import type { Units } from './lease.ts'

/** The maximum number of requests in one call of the script. */
const MAX_REQUESTS = 128

/** Held units that are lent to a request for one of its limits. The call leaves this limit out. A refused request returns them. */
export type Lent = Map<
  Limit,
  Units & {
    /** When the units were lent, by the store's clock, ms since the epoch. Their window may end before the call is decided. */
    spentAt: number
  }
>

/** A request of a call. One that the lease adds also has the original limit and its units: taken in advance by a `follow`, or refunded. */
export interface SentRequest {
  request: StoreRequest
  taken?: { limit: Limit; count: number }
  refunded?: { limit: Limit; count: number }
}

/** Refunds of unspent units, then each request without its lent limits, and a `follow` for each lease, which takes units in advance. */
export function callFor(requests: StoreRequest[], quotas: LeasedLimits, lent: Lent, now: number) {
  const refunds: SentRequest[] = []
  const others: SentRequest[] = []
  let room = MAX_REQUESTS - requests.length
  let hasTake = false
  for (const request of requests) {
    const limits = request.limits.filter((limit) => !lent.has(limit))
    if (limits.length === 0) continue
    hasTake ||= request.mode === 'take'
    // If all limits of the take are lent, the take is not sent. The follow after it is then sent as a take.
    const mode = hasTake ? request.mode : 'take'
    others.push({ request: { ...request, mode, limits } as StoreRequest })
    for (const limit of limits) {
      const quota = quotas.get(limit)
      if (!quota || room < 2) continue
      room -= 2
      const unspent = quota.lease.takeForRefund(now)
      if (unspent) {
        const { count, decidedAt } = unspent
        const limits = [{ ...limit, cost: count }]
        refunds.push({ request: { mode: 'refund', limits, decidedAt }, refunded: { limit, count } })
      }
      const count = quota.lease.unitsToTake(limit.cost, unitsInFlight(quota, now), now)
      if (count > 0) {
        const limits = [{ ...limit, cost: count }]
        others.push({ request: { mode: 'follow', limits }, taken: { limit, count } })
      }
    }
  }
  return [...refunds, ...others]
}

export function begin(sent: SentRequest[], quotas: LeasedLimits, lent: Lent, until: number) {
  const call = new LeaseCall(until)
  for (const { taken, refunded } of sent) {
    if (taken) call.carry(quotas.get(taken.limit)!, { free: taken.count })
    if (refunded) call.carry(quotas.get(refunded.limit)!, { bound: refunded.count })
  }
  for (const [limit, { count }] of lent) call.carry(quotas.get(limit)!, { bound: count })
  return call
}

/** The state of each limit in a reply, and the units that were taken in advance for its lease. */
function statesOf(sent: SentRequest[], reply: StoreReply) {
  const states = new Map<Limit, QuotaState & { taken: number }>()
  let lastTakePassed = true
  sent.forEach(({ request: { mode, limits }, taken, refunded }, index) => {
    const answers = reply.states[index]!
    if (taken) {
      const { allowed, retryAfterMs } = states.get(taken.limit)!
      const state = answers[0]!
      const count = lastTakePassed && state.allowed ? taken.count : 0
      states.set(taken.limit, { ...state, allowed, retryAfterMs, taken: count })
    } else if (!refunded) {
      limits.forEach((limit, at) => void states.set(limit, { ...answers[at]!, taken: 0 }))
      if (mode === 'take') lastTakePassed = answers.every(({ allowed }) => allowed)
    }
  })
  return states
}

/** Adds the units taken in advance to the leases, returns the lent units of a refused request, and makes the reply. */
export function conclude(
  requests: StoreRequest[],
  sent: SentRequest[],
  reply: StoreReply,
  quotas: LeasedLimits,
  lent: Lent,
  { sentAt, receivedAt }: { sentAt: number; receivedAt: number },
): StoreReply {
  const { decidedAt } = reply
  const stateByLimit = statesOf(sent, reply)
  for (const [limit, { taken, ...state }] of stateByLimit) {
    quotas.get(limit)?.lease.receive(taken, { state, decidedAt, sentAt, receivedAt })
  }
  const allows = (limit: Limit) => lent.has(limit) || stateByLimit.get(limit)!.allowed
  let lastTakePassed = true // if false, its follows are not charged
  const states = requests.map(({ mode, limits }) => {
    if (mode === 'take') lastTakePassed = limits.every(allows)
    return limits.map((limit): QuotaState => {
      const units = lent.get(limit)
      if (!units) {
        const { taken, ...state } = stateByLimit.get(limit)!
        return { ...state, remaining: state.remaining + taken }
      }
      const { lease } = quotas.get(limit)!
      if (!lastTakePassed) lease.hold(units, receivedAt)
      const { state } = lease.status(receivedAt)
      return lastTakePassed ? { ...state, decidedAt: units.spentAt } : state
    })
  })
  return { decidedAt, states }
}
