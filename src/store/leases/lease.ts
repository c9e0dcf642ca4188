/** The units that an isolate holds of one quota: plain numbers, no I/O, and time is passed in. */
import { isWithin } from '../../base/clock.ts'
import type { QuotaState } from '../../base/decision.ts'
import type { Terms } from '../store.ts'
import { createDemand } from './demand.ts'

/** A lease is at most this part of what is left of a quota, so that the last units go to the first request. */
const PARTS = 16

/** No units of a smaller quota are ever leased. */
export const MIN_QUOTA = 2 * PARTS

/** Units that were charged and are not spent. */
export interface Units {
  count: number
  /** The end of the lease, ms since the epoch by this isolate's clock. */
  until: number
  /** When a refund no longer credits them: their window is over, or the bucket is full again. */
  creditedUntil: number
  /** The store's time of the charge, ms since the epoch. */
  decidedAt: number
}

const nothing: Units = {
  count: 0,
  until: Number.POSITIVE_INFINITY,
  creditedUntil: Number.POSITIVE_INFINITY,
  decidedAt: Number.POSITIVE_INFINITY,
}

/** Merges two holdings, keeping the earliest of each deadline. */
const merged = (some: Units, others: Units): Units => ({
  count: some.count + others.count,
  until: Math.min(some.until, others.until),
  creditedUntil: Math.min(some.creditedUntil, others.creditedUntil),
  decidedAt: Math.min(some.decidedAt, others.decidedAt),
})

/** The reply of a call to a limit. */
export interface LimitReply {
  state: QuotaState
  /** The store's time of the decision. */
  decidedAt: number
  /** By this isolate's clock, ms since the epoch. */
  sentAt: number
  receivedAt: number
}

export type Lease = ReturnType<typeof createLease>

/**
 * Units are charged before they are held, and held before they are spent, so that no request passes uncounted. Each unit is in one
 * place: held, in flight with a call (brought, refunded, or lent to its request), spent, or lost.
 *
 * Time counts from when a call was sent, the earliest it can have been decided: a lease ends before the window it was charged to.
 */
export function createLease(terms: Terms, { max, ttlMs }: NonNullable<Terms['lease']>) {
  const { algorithm, windowMs, limit, burst } = terms
  const isBucket = algorithm === 'token-bucket'
  const capacity = isBucket ? burst : limit
  const demand = createDemand(ttlMs)
  let held = nothing
  let last: LimitReply | undefined
  let forgotten = false

  function left(now: number): number {
    if (!last) return 0
    return now < last.sentAt + last.state.resetAfterMs ? last.state.remaining : capacity
  }

  const has = (count: number, now: number): boolean =>
    held.count >= count && last !== undefined && isWithin(now, last.sentAt, held.until)

  /** Units of a window that is over are worth nothing, and must not shorten the deadlines of others. */
  function hold(units: Units, now: number) {
    if (forgotten || units.count === 0 || now >= units.creditedUntil) return
    held = now < held.creditedUntil ? merged(held, units) : units
  }

  return {
    asked: (count: number, now: number): void => demand.add(count, now),

    /**
     * How many units a call should bring beyond its own cost, if it refunds all held units: in all, half of the demand while a lease
     * lasts.
     * @param inFlight units of other calls
     */
    more(cost: number, inFlight: number, now: number): number {
      const worth = Math.min(max, Math.ceil(demand.lately(now) / 2), Math.floor(left(now) / PARTS))
      return Math.max(0, worth - cost - inFlight)
    },

    has,
    /** Only if `has`. */
    take(count: number): Units {
      const units = { ...held, count }
      held = held.count === count ? nothing : { ...held, count: held.count - count }
      return units
    },
    hold,

    /** Takes all held units for a refund; none if it would not be credited. */
    refund(now: number): Units | undefined {
      const units = held
      held = nothing
      return units.count > 0 && now < units.creditedUntil ? units : undefined
    },

    /** Holds the units that a call brought, and keeps its reply. */
    bring(count: number, reply: LimitReply): void {
      const { state, decidedAt, sentAt, receivedAt } = reply
      const endsAfterMs =
        algorithm === 'sliding-window' ? state.resetAfterMs - windowMs : state.resetAfterMs
      const until = sentAt + (isBucket ? ttlMs : Math.min(ttlMs, endsAfterMs))
      if (!last || decidedAt >= last.decidedAt) last = reply
      hold({ count, until, creditedUntil: sentAt + endsAfterMs, decidedAt }, receivedAt)
    },

    /** Drops units beyond `max`, which bounds held units and those in flight together. */
    trim(inFlight: number): void {
      held = { ...held, count: Math.min(held.count, Math.max(0, max - inFlight)) }
    },

    /** The state of the limit by the last reply, counting held units as remaining. */
    status(now: number): { decidedAt: number; state: QuotaState } {
      const { state, decidedAt, receivedAt } = last!
      const elapsed = Math.max(0, now - receivedAt)
      const resetAfterMs = Math.max(0, state.resetAfterMs - elapsed)
      const full = resetAfterMs === 0
      return {
        decidedAt: decidedAt + elapsed,
        state: {
          allowed: true,
          remaining: full ? capacity : Math.min(capacity, state.remaining + held.count),
          retryAfterMs: 0,
          resetAfterMs,
          nextAfterMs: full ? 0 : Math.max(1, state.nextAfterMs - elapsed),
        },
      }
    },

    /** Drops held units, and those in flight when they arrive. */
    forget(): void {
      forgotten = true
      held = nothing
    },
  }
}
