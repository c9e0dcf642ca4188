/** Cooldowns: bans of a subject in the store, so that each process learns of them when it asks. */
import { StoreError } from '../core/base/errors.ts'
import { REFUND_MS, type StoreRequest } from '../core/connection/store.ts'
import type { PolicyLimit } from '../core/decide/limit.ts'
import { operate } from '../core/decide/operate.ts'
import type { LimiterParts } from '../core/decide/question.ts'

/** The most subjects whose cooldowns a process remembers. */
const MAX_SUBJECTS = 1_000

/** A cooldown in force. */
export interface OutboundCooldown {
  /** The key: its name in the store. */
  subject: string
  /** The rest of the cooldown, ms. */
  coolingMs: number
}

/** The longest rest of a ban in these states, ms. */
export const bannedIn = (states: { bannedForMs?: number }[]): number =>
  Math.max(0, ...states.map(({ bannedForMs = 0 }) => bannedForMs))

/** Starts, finds and lifts cooldowns. The limits have a penalty whose ban is the cooldown. */
export function createCooldowns(
  partsOf: () => LimiterParts,
  waitUntil: (promise: Promise<unknown>) => void,
) {
  /** The subjects that had a cooldown, and until when one is that the store could not be told, ms since the epoch. */
  const known = new Map<string, { limit: PolicyLimit; untold: number }>()

  function note(limit: PolicyLimit, end = 0) {
    const { subject } = limit
    const untold = Math.max(end, known.get(subject)?.untold ?? 0)
    known.delete(subject)
    known.set(subject, { limit: { ...limit, cost: 0 }, untold })
    if (known.size > MAX_SUBJECTS) known.delete(known.keys().next().value!)
  }

  const restOf = (subject: string): number =>
    Math.max(0, (known.get(subject)?.untold ?? 0) - Date.now())

  const operateOn = (mode: 'peek' | 'unban', limit: PolicyLimit) =>
    operate({ mode }, [limit], partsOf(), { waitUntil })

  return {
    note,
    /** The rest of a cooldown that only this process knows, ms. */
    restOf,

    /** Starts a cooldown. A longer one stays: two calls may be told different times. */
    async start(limit: PolicyLimit, coolMs: number): Promise<void> {
      note(limit)
      const limits = [{ ...limit, cost: 0 }]
      try {
        for (let banMs = coolMs; ; ) {
          const requests: StoreRequest[] = [
            { mode: 'peek', limits },
            { mode: 'ban', banMs, limits },
          ]
          const options = { deadlineMs: REFUND_MS, waitUntil }
          const { states } = await partsOf().store.decide(requests, options)
          const before = bannedIn(states[0]!)
          if (before <= banMs) return
          banMs = before
        }
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        note(limit, Date.now() + coolMs)
      }
    },

    /** Finds those in force, by one limit for each key. @param lifts true to end them too */
    async find(limits: PolicyLimit[], lifts: boolean): Promise<OutboundCooldown[]> {
      const bySubject = new Map(limits.map((limit) => [limit.subject, { ...limit, cost: 0 }]))
      const all = await Promise.all(
        [...bySubject].map(async ([subject, limit]) => {
          const { limits } = await operateOn('peek', limit)
          return { subject, coolingMs: Math.max(bannedIn(limits), restOf(subject)) }
        }),
      )
      const found = all.filter(({ coolingMs }) => coolingMs > 0)
      if (!lifts) return found
      for (const { subject } of found) {
        await operateOn('unban', bySubject.get(subject)!)
        known.delete(subject)
      }
      return found
    },

    /** One limit for each key that this process has known in a cooldown. */
    known: (): PolicyLimit[] => [...known.values()].map(({ limit }) => limit),
  }
}
