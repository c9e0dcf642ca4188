/** The denial cache: an isolate remembers refusals and repeats them without a call. */
import { isWithin } from '../base/clock.ts'
import type { QuotaState } from '../base/decision.ts'
import { LruCache } from '../base/lru.ts'
import { canonical } from '../base/part.ts'
import type { PolicyLimit } from './limit.ts'
import type { Match } from './matched.ts'

export interface Denial {
  limits: Match[]
  states: QuotaState[]
  /** By the store's clock, ms since the epoch. */
  decidedAt: number
}

interface CachedRefusal {
  state: QuotaState
  /** By the store's clock, ms since the epoch. */
  decidedAt: number
  subject: string
  sentAt: number
  receivedAt: number
  /** When the refusal expires, ms since the epoch. */
  until: number
}

/** The maximum age of a refusal, ms: a reset, an unban, a refund or a charge under other terms by another isolate can make it outdated. */
const MAX_AGE_MS = 10_000
/** The default memory of the cache. An isolate has 128 MB. */
const MAX_BYTES = 4 * 1024 * 1024
const bytesOf = (key: string) => 2 * key.length + 300
/** How many refunded subjects are tracked by name. Beyond this, all refusals are discarded. */
const MAX_REFUNDED = 1_000

/**
 * Remembers which limits refuse requests, until they may admit again. One refusing limit answers every request that it would refuse.
 *
 * An exhausted limit admits no charge, so it cannot change before its next unit comes back (`nextAfterMs`). Not cached, because the next call
 * may have another result, are refusals of a high cost with units remaining, those that count towards a ban, those by a limit that requests in
 * flight may refund, and those below a floor (not of a fixed window), because other requests may use the units. A ban is cached.
 *
 * The lifetime counts from when the call was sent, so the cache refuses no request that the store would admit. Waits count from when the reply
 * was received, so a client that waits for `retryAfterMs` is never too early, and at most one round trip too late.
 */
export interface DenialCache {
  /** All limits of a request that are known to refuse it. Returns `undefined` if the store must decide. */
  find(limits: Match[], now: number): Denial | undefined
  keep(
    limit: PolicyLimit,
    state: QuotaState,
    decidedAt: number,
    sentAt: number,
    receivedAt: number,
  ): void
  /** Forgets refusals of these subjects, including those in flight, after a request that may have changed their quotas. */
  forget(now: number, subjects: string[]): void
}

export function createDenialCache(maxBytes = MAX_BYTES): DenialCache {
  const entries = new LruCache<CachedRefusal>({ maxSize: maxBytes, sizeOf: bytesOf })
  let allForgottenAt = Number.NEGATIVE_INFINITY // every refusal that was sent until then is outdated
  const forgottenAt = new Map<string, number>() // the same for single subjects
  let latest = Number.NEGATIVE_INFINITY
  /** The latest time of any request: the clock of one that another one wakes may be late. Beyond `MAX_AGE_MS`, it was set back. */
  function time(now: number): number {
    latest = now < latest - MAX_AGE_MS ? now : Math.max(latest, now)
    return latest
  }
  const isForgotten = (subject: string, sentAt: number) =>
    sentAt <= allForgottenAt || sentAt <= (forgottenAt.get(subject) ?? allForgottenAt)

  function live(limit: Match, now: number): CachedRefusal | undefined {
    const key = keyOf(limit)
    const entry = entries.get(key)
    if (!entry) return undefined
    const { subject, sentAt, until } = entry
    if (isWithin(now, sentAt, until) && !isForgotten(subject, sentAt)) return entry
    entries.delete(key)
    return undefined
  }

  return {
    find(limits, now) {
      time(now)
      if (entries.count === 0) return undefined
      let denial: Denial | undefined
      for (const limit of limits) {
        const { terms } = limit
        const entry = terms.mode === 'enforce' ? live(limit, now) : undefined
        // This limit may also refuse, and the store must count that refusal towards a ban.
        if (!entry?.state.bannedForMs && terms.penalty && terms.mode === 'enforce') return undefined
        if (!entry || (terms.settles && !entry.state.bannedForMs)) continue
        const elapsed = Math.max(0, now - entry.receivedAt)
        denial ??= { limits: [], states: [], decidedAt: 0 }
        denial.limits.push(limit)
        denial.states.push(after(entry.state, elapsed))
        denial.decidedAt = Math.max(denial.decidedAt, entry.decidedAt + elapsed)
      }
      return denial
    },

    keep(limit, state, decidedAt, sentAt, receivedAt) {
      time(receivedAt)
      const wasClockSetBack = receivedAt < sentAt
      if (wasClockSetBack) return
      const validMs = validFor(limit, state)
      const { subject } = limit
      if (validMs <= 0 || isForgotten(subject, sentAt)) return
      const until = sentAt + Math.min(validMs, MAX_AGE_MS)
      entries.set(keyOf(limit), { state, decidedAt, subject, sentAt, receivedAt, until })
    },

    forget(now, subjects) {
      const until = time(now)
      for (const subject of subjects) forgottenAt.set(subject, until)
      if (forgottenAt.size > MAX_REFUNDED) {
        allForgottenAt = until
        forgottenAt.clear()
      }
    },
  }
}

/** The key of a refusal. It includes everything that the refusal depends on: quota, terms, values, cost and floor. */
const keyOf = ({ terms, partitionKey, distinct, cost, floor = 0, period }: Match): string =>
  `${terms.tag} ${terms.limit} ${terms.burst} ${cost} ${floor} ${terms.penalty?.tag ?? ''} ${period?.[0] ?? ''} ${canonical(distinct ? [...partitionKey, ...distinct] : partitionKey)}`

/** How long a refusal is certain to stay valid, ms. 0 for an admission, and for a refusal that must not be cached. */
function validFor({ terms, floor }: Match, state: QuotaState): number {
  const { allowed, remaining, retryAfterMs, resetAfterMs, nextAfterMs, bannedForMs } = state
  if (allowed || terms.mode === 'shadow') return 0
  if (bannedForMs) return bannedForMs
  if (terms.penalty || remaining > 0 || retryAfterMs === null) return 0
  if (floor && terms.algorithm !== 'fixed-window') return 0
  if (terms.settles) return 0
  // Until a lease ends, other isolates may refund its unspent units. After the limit of an operator another one applies.
  const { overriddenForMs = MAX_AGE_MS } = state
  // So early a request may have a place again. In a line, the other times are estimates, but the quota is full no later than it says.
  const untilPlaceMs = Math.min(retryAfterMs - (terms.wait ?? 0), resetAfterMs)
  return Math.min(nextAfterMs, untilPlaceMs, overriddenForMs, terms.lease?.ttlMs ?? MAX_AGE_MS)
}

function after(state: QuotaState, elapsed: number): QuotaState {
  const left = (wait: number) => Math.max(0, wait - elapsed)
  const later = { ...state }
  if (later.retryAfterMs !== null) later.retryAfterMs = left(later.retryAfterMs)
  later.resetAfterMs = left(later.resetAfterMs)
  later.nextAfterMs = left(later.nextAfterMs)
  if (later.bannedForMs) later.bannedForMs = left(later.bannedForMs)
  if (later.overriddenForMs) later.overriddenForMs = left(later.overriddenForMs)
  return later
}
