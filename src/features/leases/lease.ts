/** The leased units that one isolate holds of one quota. Plain numbers without I/O; the caller passes the time. */
import { isWithin } from '../../core/base/clock.ts'
import type { QuotaState } from '../../core/base/decision.ts'
import { capacityOf } from '../../core/base/units.ts'
import { resized } from '../../core/connection/algorithms/index.ts'
import type { Limit } from '../../core/connection/store.ts'

/** Counts requested units as a sliding window of `spanMs` does: two counters, the older one weighted by its remaining overlap. */
export function createDemand(spanMs: number) {
  let start = Number.NEGATIVE_INFINITY
  let current = 0
  let previous = 0

  function roll(now: number) {
    if (isWithin(now, start, start + spanMs)) return
    const isNextSpan = isWithin(now, start + spanMs, start + 2 * spanMs)
    previous = isNextSpan ? current : 0
    current = 0
    start = isNextSpan ? start + spanMs : now
  }

  return {
    add(units: number, now: number): void {
      roll(now)
      current += units
    },
    recent(now: number): number {
      roll(now)
      return current + previous * (1 - (now - start) / spanMs)
    },
  }
}

/** A lease is at most 1/16 of the remaining quota, so that no isolate holds back the last units. */
const PARTS = 16

/** Units that are charged in the store and not yet spent. */
export interface Units {
  count: number
  /** The end of the lease, ms since the epoch by this isolate's clock. */
  until: number
  /** When a refund has no effect any more, ms since the epoch: the window has ended, or the bucket is full again. */
  refundableUntil: number
  /** The time of the charge by the store's clock, ms since the epoch. */
  decidedAt: number
}

const noUnits: Units = {
  count: 0,
  until: Number.POSITIVE_INFINITY,
  refundableUntil: Number.POSITIVE_INFINITY,
  decidedAt: Number.POSITIVE_INFINITY,
}

/** Keeps the earlier of each deadline. */
const merged = (some: Units, others: Units): Units => ({
  count: some.count + others.count,
  until: Math.min(some.until, others.until),
  refundableUntil: Math.min(some.refundableUntil, others.refundableUntil),
  decidedAt: Math.min(some.decidedAt, others.decidedAt),
})

export interface LimitReply {
  state: QuotaState
  /** The time of the decision by the store's clock, ms since the epoch. */
  decidedAt: number
  /** When the call was sent, by this isolate's clock, ms since the epoch. */
  sentAt: number
  receivedAt: number
}

export type Lease = ReturnType<typeof createLease>

/**
 * A lease of one quota, or of its part above a floor. Units are charged in the store before the isolate holds them, so every admitted
 * request is counted. Each unit is held, in flight with a call (requested, refunded, or lent to its request), spent, or lost. All deadlines
 * count from when the call was sent, the earliest time of the charge: a lease ends no later than its window.
 */
export function createLease(
  leased: Pick<Limit, 'terms' | 'floor' | 'override'>,
  { max, ttlMs }: NonNullable<Limit['terms']['lease']>,
) {
  const { algorithm, windowMs } = leased.terms
  const isBucket = algorithm === 'token-bucket'
  const demand = createDemand(ttlMs)
  let held = noUnits
  let lastReply: LimitReply | undefined
  let isForgotten = false

  /** The floor, and the capacity above it. An operator may have changed both. */
  function size() {
    const { terms, floor = 0 } = resized(leased, lastReply?.state.limit)
    return { floor, capacity: capacityOf(algorithm, terms) - floor }
  }

  function remaining(now: number): number {
    if (!lastReply) return 0
    const { sentAt, state } = lastReply
    return now < sentAt + state.resetAfterMs ? state.remaining : size().capacity
  }

  const has = (count: number, now: number): boolean =>
    held.count >= count && lastReply !== undefined && isWithin(now, lastReply.sentAt, held.until)

  /** Adds units. Ignores units of a window that has ended: they are worthless, and would shorten the deadline of the other units. */
  function hold(units: Units, now: number) {
    if (isForgotten || units.count === 0 || now >= units.refundableUntil) return
    held = now < held.refundableUntil ? merged(held, units) : units
  }

  return {
    addDemand: demand.add,

    /** The units to take beyond a cost: half of the demand of one lease. The call refunds all held units first. @param inFlight of other calls */
    unitsToTake(cost: number, inFlight: number, now: number): number {
      const wanted = Math.ceil(demand.recent(now) / 2)
      const target = Math.min(max, wanted, Math.floor(remaining(now) / PARTS))
      return Math.max(0, target - cost - inFlight)
    },

    has,
    /** Takes units to spend them. Call `has` first. */
    take(count: number): Units {
      const units = { ...held, count }
      held = held.count === count ? noUnits : { ...held, count: held.count - count }
      return units
    },
    hold,

    /** Takes all held units for a refund. Returns `undefined` if a refund would have no effect. */
    takeForRefund(now: number): Units | undefined {
      const units = held
      held = noUnits
      return units.count > 0 && now < units.refundableUntil ? units : undefined
    },

    receive(count: number, reply: LimitReply): void {
      const { state, decidedAt, sentAt, receivedAt } = reply
      const endsAfterMs =
        algorithm === 'sliding-window' ? state.resetAfterMs - windowMs : state.resetAfterMs
      const until = sentAt + (isBucket ? ttlMs : Math.min(ttlMs, endsAfterMs))
      if (!lastReply || decidedAt >= lastReply.decidedAt) lastReply = reply
      hold({ count, until, refundableUntil: sentAt + endsAfterMs, decidedAt }, receivedAt)
    },

    /** Drops units beyond `max`, the upper bound of held units and units in flight together. */
    trim(inFlight: number): void {
      held = { ...held, count: Math.min(held.count, Math.max(0, max - inFlight)) }
    },

    /** The state of the limit by the last reply. Held units count as remaining. */
    status(now: number): { decidedAt: number; state: QuotaState } {
      const { state, decidedAt, receivedAt } = lastReply!
      const elapsed = Math.max(0, now - receivedAt)
      const resetAfterMs = Math.max(0, state.resetAfterMs - elapsed)
      const isFull = resetAfterMs === 0
      const { floor, capacity } = size()
      const overriddenForMs = Math.max(0, (state.overriddenForMs ?? 0) - elapsed)
      return {
        decidedAt: decidedAt + elapsed,
        state: {
          allowed: true,
          remaining: isFull ? capacity : Math.min(capacity, state.remaining + held.count),
          retryAfterMs: 0,
          resetAfterMs,
          nextAfterMs: isFull ? 0 : Math.max(1, state.nextAfterMs - elapsed),
          ...(floor > 0 && { reserved: isFull ? floor : (state.reserved ?? 0) }),
          ...(state.limit && { limit: state.limit, overriddenForMs }),
        },
      }
    },

    /** Drops all held units, and units in flight as soon as they arrive. */
    forget(): void {
      isForgotten = true
      held = noUnits
    },
  }
}
