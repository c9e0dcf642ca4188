/** A call that brings leased units: its requests, what it carries, and how its reply is divided. */

import type { QuotaState } from '../../base/decision.ts'
import type { Limit, StoreReply, StoreRequest } from '../store.ts'
import { LeaseCall, type LeasedLimits, unitsInFlight } from './in-flight.ts'
import type { Units } from './lease.ts'

/** The script's bound on one call. */
const MAX_REQUESTS = 128

/** Held units that pay for a limit, so that the call does not ask for it. They are returned if the request is refused. */
export type Lent = Map<
  Limit,
  Units & {
    /** By the store's time, ms since the epoch. When the call is decided their window may be over. */
    spentAt: number
  }
>

/** A request of a call. `limit` is the one that it is made for, where that is not in the request itself. */
export interface SentRequest {
  request: StoreRequest
  /** Set for a request that takes units for a lease. */
  more?: { limit: Limit; count: number }
  /** Set for a refund of unspent units. */
  back?: { limit: Limit; count: number }
}

/**
 * The requests of a call: refunds of earlier leases, then each request without its lent limits, followed for every lease by a `follow`
 * that takes more units if the request itself passes.
 */
export function callFor(
  requests: StoreRequest[],
  quotas: LeasedLimits,
  lent: Lent,
  now: number,
): SentRequest[] {
  const back: SentRequest[] = []
  const asked: SentRequest[] = []
  let room = MAX_REQUESTS - requests.length
  let taken = false
  for (const request of requests) {
    const limits = request.limits.filter((limit) => !lent.has(limit))
    if (limits.length === 0) continue
    taken ||= request.mode === 'take'
    // If all limits of the take are lent, it is not sent, and the follow after it must be charged by itself.
    asked.push({ request: { ...request, ...(!taken && { mode: 'take' }), limits } as StoreRequest })
    for (const limit of limits) {
      const quota = quotas.get(limit)
      if (!quota || room < 2) continue
      room -= 2
      const unspent = quota.lease.refund(now)
      if (unspent) {
        const { count, decidedAt } = unspent
        const limits = [{ ...limit, cost: count }]
        back.push({ request: { mode: 'refund', limits, decidedAt }, back: { limit, count } })
      }
      const count = quota.lease.more(limit.cost, unitsInFlight(quota, now), now)
      if (count > 0) {
        const limits = [{ ...limit, cost: count }]
        asked.push({ request: { mode: 'follow', limits }, more: { limit, count } })
      }
    }
  }
  return [...back, ...asked]
}

/** Registers what a call carries until it ends. */
export function begin(
  sent: SentRequest[],
  quotas: LeasedLimits,
  lent: Lent,
  until: number,
): LeaseCall {
  const call = new LeaseCall(until)
  for (const { more, back } of sent) {
    if (more) call.carry(quotas.get(more.limit)!, { free: more.count })
    if (back) call.carry(quotas.get(back.limit)!, { bound: back.count })
  }
  for (const [limit, { count }] of lent) call.carry(quotas.get(limit)!, { bound: count })
  return call
}

/** The state of each limit in a reply, and the units that were charged for its lease. */
function received(sent: SentRequest[], reply: StoreReply) {
  const states = new Map<Limit, QuotaState & { more: number }>()
  let passed = true
  sent.forEach(({ request: { mode, limits }, more, back }, index) => {
    const answers = reply.states[index]!
    if (more) {
      const { allowed, retryAfterMs } = states.get(more.limit)!
      const state = answers[0]!
      const count = passed && state.allowed ? more.count : 0
      states.set(more.limit, { ...state, allowed, retryAfterMs, more: count })
    } else if (!back) {
      limits.forEach((limit, at) => void states.set(limit, { ...answers[at]!, more: 0 }))
      if (mode === 'take') passed = answers.every(({ allowed }) => allowed)
    }
  })
  return states
}

/** Adds what a call brought to the leases, takes back what a refused request was lent, and answers the requests. */
export function conclude(
  requests: StoreRequest[],
  sent: SentRequest[],
  reply: StoreReply,
  quotas: LeasedLimits,
  lent: Lent,
  { sentAt, receivedAt }: { sentAt: number; receivedAt: number },
): StoreReply {
  const { decidedAt } = reply
  const asked = received(sent, reply)
  for (const [limit, { more, ...state }] of asked) {
    quotas.get(limit)?.lease.bring(more, { state, decidedAt, sentAt, receivedAt })
  }
  const allows = (limit: Limit) => lent.has(limit) || asked.get(limit)!.allowed
  let passed = true // whether the last take did; if not, the follows after it are not charged
  const states = requests.map(({ mode, limits }) => {
    if (mode === 'take') passed = limits.every(allows)
    return limits.map((limit): QuotaState => {
      const units = lent.get(limit)
      if (!units) {
        const { more, ...state } = asked.get(limit)!
        return { ...state, remaining: state.remaining + more }
      }
      const { lease } = quotas.get(limit)!
      if (!passed) lease.hold(units, receivedAt)
      const { state } = lease.status(receivedAt)
      return passed ? { ...state, decidedAt: units.spentAt } : state
    })
  })
  return { decidedAt, states }
}
