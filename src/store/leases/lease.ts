/** What an isolate holds of one quota: plain numbers, no I/O, and time is passed in. */
import type { LeaseTerms as Terms } from '../../config/schema/lease.ts'
import type { LimitRow, RowState } from '../store.ts'
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
  /** From then on they have come back by themselves: the window they were charged to is over, or the bucket is full again. */
  owedUntil: number
  /** The store's time of the charge, which a refund names: ms since the epoch. */
  receipt: number
}

const nothing: Units = {
  count: 0,
  until: Number.POSITIVE_INFINITY,
  owedUntil: Number.POSITIVE_INFINITY,
  receipt: Number.POSITIVE_INFINITY,
}

/** Some with others: what holds for any of them holds for all. */
const together = (some: Units, others: Units): Units => ({
  count: some.count + others.count,
  until: Math.min(some.until, others.until),
  owedUntil: Math.min(some.owedUntil, others.owedUntil),
  receipt: Math.min(some.receipt, others.receipt),
})

/** What a call told of a row. */
export interface Told {
  row: RowState
  /** The store's time of the decision. */
  at: number
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
export function createLease(policy: LimitRow['policy'], { max, ttlMs }: Terms) {
  const { algorithm, windowMs, limit, burst } = policy
  const isBucket = algorithm === 'token-bucket' || algorithm === 'gcra'
  const capacity = isBucket ? burst : limit
  const demand = createDemand(ttlMs)
  let held = nothing
  let told: Told | undefined
  let forgotten = false

  function left(now: number): number {
    if (!told) return 0
    return now < told.sentAt + told.row.resetAfterMs ? told.row.remaining : capacity
  }

  /** Nothing of a lease is spent from its end on, nor where the clock was set back to before it began. */
  const has = (count: number, now: number): boolean =>
    held.count >= count && now < held.until && told !== undefined && now >= told.sentAt

  /** Units of a window that is over are worth nothing, and must not be what others are together with. */
  function hold(units: Units, now: number) {
    if (forgotten || units.count === 0 || now >= units.owedUntil) return
    held = now < held.owedUntil ? together(held, units) : units
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
      return units.count > 0 && now < units.owedUntil ? units : undefined
    },

    /** Takes in what a call brought and told. */
    bring(count: number, news: Told): void {
      const { row, at, sentAt, receivedAt } = news
      const endsAfterMs =
        algorithm === 'sliding-window' ? row.resetAfterMs - windowMs : row.resetAfterMs
      const until = sentAt + (isBucket ? ttlMs : Math.min(ttlMs, endsAfterMs))
      if (!told || at >= told.at) told = news
      hold({ count, until, owedUntil: sentAt + endsAfterMs, receipt: at }, receivedAt)
    },

    /** Beyond what may be held, with what is under way, units are lost. */
    trim(underWay: number): void {
      held = { ...held, count: Math.min(held.count, Math.max(0, max - underWay)) }
    },

    /** How the limit stands after something of it was spent here: as last told, and what is held is not gone. */
    tell(now: number): { at: number; row: RowState } {
      const { row, at, receivedAt } = told!
      const elapsed = Math.max(0, now - receivedAt)
      const resetAfterMs = Math.max(0, row.resetAfterMs - elapsed)
      const full = resetAfterMs === 0
      return {
        at: at + elapsed,
        row: {
          allowed: true,
          remaining: full ? capacity : Math.min(capacity, row.remaining + held.count),
          retryAfterMs: 0,
          resetAfterMs,
          nextAfterMs: full ? 0 : Math.max(1, row.nextAfterMs - elapsed),
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
