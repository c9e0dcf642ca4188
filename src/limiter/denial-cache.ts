/** Refusals answered from memory. */
import type { QuotaState } from '../base/decision.ts'
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

interface Entry {
  state: QuotaState
  /** The store's time of the decision. */
  decidedAt: number
  /** Whose quota, as the store names it. */
  subject: string
  sentAt: number
  receivedAt: number
  /** The end of what is known, ms since the epoch. */
  until: number
  bytes: number
}

/**
 * How long a change by others may go unseen, in ms: a reset, an unban or a refund by another isolate, and a charge by other terms
 * (another plan, or policies that have not come here yet), can make a quota better than it was seen.
 */
const MAX_AGE_MS = 10_000
/** An isolate has some 128 MB. Beyond this the least recently used entries go. */
const MAX_BYTES = 4 * 1024 * 1024
/** Subjects with a refund that are tracked by name; beyond it every refusal that is still on its way is discarded. */
const MAX_REFUNDED = 1_000

/**
 * Remembers which limits refuse, until they may admit again. One limit that refuses is enough: it answers every request that this limit
 * would refuse, whatever the request's other limits are.
 *
 * A limit with nothing left takes no charge. So until something of it comes back (`nextAfterMs`) it cannot change, and its numbers run
 * with the clock. Three kinds of refusal are not kept, since the next call may have another answer: a refusal with something left (a
 * high cost, which others may take), a refusal that counts towards a ban, and a refusal by a limit that open requests may refund;
 * a ban itself is kept.
 *
 * Time counts from when the call was sent, the earliest it can have been decided, so a client is never refused that would pass. Waits
 * count from when the reply came, so a client that waits as told is not early, and late by at most a round trip.
 */
export interface DenialCache {
  /** The known refusals of a request, all of its limits that are known to refuse; `undefined` where the store must be asked. */
  find(limits: Match[], now: number): Denial | undefined
  /** Takes in a reply: each limit that refuses by itself. */
  keep(
    limits: PolicyLimit[],
    states: QuotaState[],
    decidedAt: number,
    sentAt: number,
    receivedAt: number,
  ): void
  /** Forgets refusals of these subjects (default: all), also those on their way, after this isolate has made their quotas better. */
  forget(now: number, subjects?: string[]): void
}

export function createDenialCache(maxBytes = MAX_BYTES): DenialCache {
  const entries = new Map<string, Entry>() // the least recently used first
  let bytes = 0
  let forgotten = Number.NEGATIVE_INFINITY // everything that was sent until then
  const refunded = new Map<string, number>() // and by subject

  function remove(key: string, entry: Entry) {
    entries.delete(key)
    bytes -= entry.bytes
  }

  function live(limit: Match, now: number): Entry | undefined {
    const key = keyOf(limit)
    const entry = entries.get(key)
    if (!entry) return undefined
    entries.delete(key)
    // After a clock was set back nothing is known.
    if (now >= entry.until || now < entry.sentAt) {
      bytes -= entry.bytes
      return undefined
    }
    entries.set(key, entry)
    return entry
  }

  return {
    find(limits, now) {
      if (entries.size === 0) return undefined
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
        const key = keyOf(limit)
        const old = entries.get(key)
        if (old) remove(key, old)
        const until = sentAt + Math.min(lasts, MAX_AGE_MS)
        const size = 2 * key.length + 300
        entries.set(key, { state, decidedAt, subject, sentAt, receivedAt, until, bytes: size })
        bytes += size
      }
      for (const [key, entry] of entries) {
        if (bytes <= maxBytes) break
        remove(key, entry)
      }
    },

    forget(now, subjects) {
      for (const one of subjects ?? []) refunded.set(one, now)
      if (!subjects || refunded.size > MAX_REFUNDED) {
        forgotten = now
        refunded.clear()
      }
      for (const [key, entry] of entries) {
        if (!subjects || subjects.includes(entry.subject)) remove(key, entry)
      }
    },
  }
}

/** Everything that a refusal by one limit depends on: whose quota, by which terms, at what price. */
const keyOf = ({ policy, partitionKey, cost, period }: Match): string =>
  `${policy.tag} ${policy.limit} ${policy.burst} ${cost} ${policy.penalty?.tag ?? ''} ${period?.[0] ?? ''} ${canonical(partitionKey)}`

/** For how long a refusal by a limit stays what it is, ms; 0 for an admission, and where only the store knows. */
function knownFor({ policy }: Match, state: QuotaState): number {
  const { allowed, remaining, retryAfterMs, nextAfterMs, bannedForMs } = state
  if (allowed || policy.mode === 'shadow') return 0
  if (bannedForMs) return bannedForMs
  if (policy.penalty || remaining > 0 || retryAfterMs === null || isOpen({ policy })) return 0
  // Other isolates refund what they do not need of a lease, at the latest when it ends.
  return Math.min(nextAfterMs, policy.lease?.ttlMs ?? MAX_AGE_MS)
}

/** A refusing limit some time later. */
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
