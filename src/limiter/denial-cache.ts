/** Refusals answered from memory. */
import { isWithin } from '../base/clock.ts'
import type { QuotaState } from '../base/decision.ts'
import { LruCache } from '../base/lru.ts'
import type { Match } from '../match/match.ts'
import { canonical } from '../match/subject.ts'
import type { PolicyLimit } from './limit.ts'
import { isOpen } from './settle.ts'

/** The limits that refuse a request. */
export interface Denial {
  limits: Match[]
  states: QuotaState[]
  /** By the store's clock, ms since the epoch. */
  decidedAt: number
}

/** A limit that refuses. */
interface CachedRefusal {
  state: QuotaState
  /** The store's time of the decision. */
  decidedAt: number
  subject: string
  sentAt: number
  receivedAt: number
  /** ms since the epoch */
  until: number
}

/**
 * How long a change elsewhere may go unseen, in ms: a reset, an unban or a refund by another isolate, or a charge by other terms
 * (another plan, or live policies that have not arrived here), can make a quota better than cached.
 */
const MAX_AGE_MS = 10_000
/** Of the 128 MB that an isolate has. */
const MAX_BYTES = 4 * 1024 * 1024
const bytesOf = (key: string) => 2 * key.length + 300
/** Subjects with a refund that are tracked by name; beyond it every refusal that is still on its way is discarded. */
const MAX_REFUNDED = 1_000

/**
 * Remembers which limits refuse, until they may admit again. One refusing limit answers every request that it would refuse, whatever the
 * request's other limits are.
 *
 * An exhausted limit takes no charge, so it cannot change before its next unit returns (`nextAfterMs`). Three kinds of refusal are not
 * cached, since the next call may have another answer: a refusal with units left (of a high cost), a refusal that counts towards a ban,
 * and a refusal by a limit to which open requests may refund. A ban itself is cached.
 *
 * A refusal lasts from when the call was sent, the earliest it can have been decided, so no client is refused that would pass. Waits
 * count from when the reply was received, so a client that waits as told is never early, and late by at most a round trip.
 */
export interface DenialCache {
  /** All limits of a request that are known to refuse; `undefined` if the store must be asked. */
  find(limits: Match[], now: number): Denial | undefined
  /** Caches each refusing limit of a reply. */
  keep(
    limits: PolicyLimit[],
    states: QuotaState[],
    decidedAt: number,
    sentAt: number,
    receivedAt: number,
  ): void
  /** Forgets refusals of these subjects (default: all), including those in flight, after this isolate has refunded or reset them. */
  forget(now: number, subjects?: string[]): void
}

export function createDenialCache(maxBytes = MAX_BYTES): DenialCache {
  const entries = new LruCache<CachedRefusal>({ maxSize: maxBytes, sizeOf: bytesOf })
  let forgotten = Number.NEGATIVE_INFINITY // everything that was sent until then
  const refunded = new Map<string, number>() // and by subject

  function live(limit: Match, now: number): CachedRefusal | undefined {
    const key = keyOf(limit)
    const entry = entries.get(key)
    if (!entry || isWithin(now, entry.sentAt, entry.until)) return entry
    entries.delete(key)
    return undefined
  }

  return {
    find(limits, now) {
      if (entries.count === 0) return undefined
      let denial: Denial | undefined
      for (const limit of limits) {
        const { policy } = limit
        const entry = policy.mode === 'enforce' ? live(limit, now) : undefined
        // A refusal by this limit would count towards a ban, and it may be about to refuse.
        if (!entry?.state.bannedForMs && policy.penalty && policy.mode === 'enforce')
          return undefined
        if (!entry || (isOpen(limit) && !entry.state.bannedForMs)) continue
        const elapsed = Math.max(0, now - entry.receivedAt)
        denial ??= { limits: [], states: [], decidedAt: 0 }
        denial.limits.push(limit)
        denial.states.push(after(entry.state, elapsed))
        denial.decidedAt = Math.max(denial.decidedAt, entry.decidedAt + elapsed)
      }
      return denial
    },

    keep(limits, states, decidedAt, sentAt, receivedAt) {
      const isSetBack = receivedAt < sentAt // the clock, while the reply was on its way
      if (sentAt <= forgotten || isSetBack) return
      for (const [index, limit] of limits.entries()) {
        const state = states[index]!
        const lasts = knownFor(limit, state)
        const { subject } = limit
        if (lasts <= 0 || sentAt <= (refunded.get(subject) ?? forgotten)) continue
        const until = sentAt + Math.min(lasts, MAX_AGE_MS)
        entries.set(keyOf(limit), { state, decidedAt, subject, sentAt, receivedAt, until })
      }
    },

    forget(now, subjects) {
      for (const one of subjects ?? []) refunded.set(one, now)
      if (!subjects || refunded.size > MAX_REFUNDED) {
        forgotten = now
        refunded.clear()
      }
      entries.removeIf((_, { subject }) => !subjects || subjects.includes(subject))
    },
  }
}

/** All that a refusal by one limit depends on: quota, terms and cost. */
const keyOf = ({ policy, partitionKey, cost, period }: Match): string =>
  `${policy.tag} ${policy.limit} ${policy.burst} ${cost} ${policy.penalty?.tag ?? ''} ${period?.[0] ?? ''} ${canonical(partitionKey)}`

/** How long a limit keeps refusing, ms; 0 for an admission, and if only the store knows. */
function knownFor({ policy }: Match, state: QuotaState): number {
  const { allowed, remaining, retryAfterMs, nextAfterMs, bannedForMs } = state
  if (allowed || policy.mode === 'shadow') return 0
  if (bannedForMs) return bannedForMs
  if (policy.penalty || remaining > 0 || retryAfterMs === null || isOpen({ policy })) return 0
  // Other isolates may refund unspent units of a lease until it ends.
  return Math.min(nextAfterMs, policy.lease?.ttlMs ?? MAX_AGE_MS)
}

/** The state of a refusing limit after some time. */
function after({ retryAfterMs, resetAfterMs, nextAfterMs, ...state }: QuotaState, elapsed: number) {
  const left = (wait: number) => Math.max(0, wait - elapsed)
  return {
    ...state,
    retryAfterMs: retryAfterMs === null ? null : left(retryAfterMs),
    resetAfterMs: left(resetAfterMs),
    nextAfterMs: left(nextAfterMs),
    ...(state.bannedForMs && { bannedForMs: left(state.bannedForMs) }),
  }
}
