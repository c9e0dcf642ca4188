/** What an isolate holds of one quota: plain numbers, no I/O, and time is passed in. */
import { isWithin } from '../../base/clock.ts'
import type { QuotaState } from '../../base/decision.ts'
import type { LeaseTerms, Terms } from '../store.ts'
import { createDemand } from './demand.ts'

/** Of what is left of a quota a lease is one part in so many, so that the last units go to whoever asks first. */
const PARTS = 16

/** Of a smaller quota nothing is ever leased, in units. */
export const MIN_QUOTA = 2 * PARTS

/** Units that were charged and are not spent. */
export interface Units {
  count: number
  /** The end of the lease, ms since the epoch by this isolate's clock. */
  until: number
  /** When a refund no longer credits them: the window they were charged to is over, or the bucket is full again. */
  creditedUntil: number
  /** The store's time of the charge, which a refund names: ms since the epoch. */
  decidedAt: number
}

const nothing: Units = {
  count: 0,
  until: Number.POSITIVE_INFINITY,
  creditedUntil: Number.POSITIVE_INFINITY,
  decidedAt: Number.POSITIVE_INFINITY,
}

/** Some with others: what holds for any of them holds for all. */
const together = (some: Units, others: Units): Units => ({
  count: some.count + others.count,
  until: Math.min(some.until, others.until),
  creditedUntil: Math.min(some.creditedUntil, others.creditedUntil),
  decidedAt: Math.min(some.decidedAt, others.decidedAt),
})

/** What a call told of a limit. */
export interface Told {
  state: QuotaState
  /** The store's time of the decision. */
  decidedAt: number
  /** By this isolate's clock, all ms since the epoch. */
  sentAt: number
  receivedAt: number
}

export type Lease = ReturnType<typeof createLease>

/**
 * Units are charged before they are held, and held before they are spent, so that nothing is let through that was not counted. Of each it
 * is clear where it is: held here, under way with a call (to come, to go back, or lent to its request until that is decided), spent, or lost.
 *
 * Time counts from when the call was sent, the earliest it can have been decided: a lease ends before the window that it was charged to.
 */
export function createLease(terms: Terms, { max, ttlMs }: LeaseTerms) {
  const { algorithm, windowMs, limit, burst } = terms
  const isBucket = algorithm === 'token-bucket'
  const capacity = isBucket ? burst : limit
  const demand = createDemand(ttlMs)
  let held = nothing
  let told: Told | undefined
  let forgotten = false

  function left(now: number): number {
    if (!told) return 0
    return now < told.sentAt + told.state.resetAfterMs ? told.state.remaining : capacity
  }

  const has = (count: number, now: number): boolean =>
    held.count >= count && told !== undefined && isWithin(now, told.sentAt, held.until)

  /** Units of a window that is over are worth nothing, and must not be what others are together with. */
  function hold(units: Units, now: number) {
    if (forgotten || units.count === 0 || now >= units.creditedUntil) return
    held = now < held.creditedUntil ? together(held, units) : units
  }

  return {
    asked: (count: number, now: number): void => demand.add(count, now),

    /**
     * How many units a call is to bring beyond its own cost, where all that was held goes back with it: with that, half of what is asked
     * for while a lease lasts.
     * @param underWay units of other calls
     */
    more(cost: number, underWay: number, now: number): number {
      const worth = Math.min(max, Math.ceil(demand.lately(now) / 2), Math.floor(left(now) / PARTS))
      return Math.max(0, worth - cost - underWay)
    },

    has,
    /** What is held already: see `has`. */
    take(count: number): Units {
      const units = { ...held, count }
      held = held.count === count ? nothing : { ...held, count: held.count - count }
      return units
    },
    hold,

    /** All that is held, as a call takes it back to the store; nothing where it would not be credited. */
    refund(now: number): Units | undefined {
      const units = held
      held = nothing
      return units.count > 0 && now < units.creditedUntil ? units : undefined
    },

    /** Takes in what a call brought and told. */
    bring(count: number, news: Told): void {
      const { state, decidedAt, sentAt, receivedAt } = news
      const endsAfterMs =
        algorithm === 'sliding-window' ? state.resetAfterMs - windowMs : state.resetAfterMs
      const until = sentAt + (isBucket ? ttlMs : Math.min(ttlMs, endsAfterMs))
      if (!told || decidedAt >= told.decidedAt) told = news
      hold({ count, until, creditedUntil: sentAt + endsAfterMs, decidedAt }, receivedAt)
    },

    /** Beyond what may be held, with what is under way, units are lost. */
    trim(underWay: number): void {
      held = { ...held, count: Math.min(held.count, Math.max(0, max - underWay)) }
    },

    /** How the limit stands after something of it was spent here: as last told, and what is held is not gone. */
    tell(now: number): { decidedAt: number; state: QuotaState } {
      const { state, decidedAt, receivedAt } = told!
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

    /** Nothing is held any more, nor taken in: also what is on its way is lost. */
    forget(): void {
      forgotten = true
      held = nothing
    },
  }
}
