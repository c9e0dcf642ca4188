/** The local store: counts in the memory of one isolate while the real store does not answer (`onStoreError: 'local'`). */
import { systemClock } from '../../base/clock.ts'
import type { QuotaState } from '../../base/decision.ts'
import type { Limit, Store, StoreRequest } from '../store.ts'
import { stateFrom } from './algorithms/from-reply.ts'
import { algorithms, type QuotaTerms, type State } from './algorithms/index.ts'
import { refunded } from './algorithms/refund.ts'
import { type LastReply, LocalEntries, type LocalEntry } from './entries.ts'
import { capacityOf, cutState, shareOf } from './share.ts'

/** Within this time, ms, the store's clock orders replies. Beyond it the order of arrival does: that clock may have been set back. */
const MAX_DISORDER_MS = 10_000

/** True if the last reply is newer than one that arrives now: replies may overtake each other. At equal times the stricter one wins. */
function isNewer(
  last: LastReply,
  state: QuotaState,
  decidedAt: number,
  receivedAt: number,
): boolean {
  if (receivedAt - last.receivedAt > MAX_DISORDER_MS || receivedAt < last.receivedAt) return false
  if (decidedAt !== last.decidedAt) return last.decidedAt > decidedAt
  if (last.state.remaining !== state.remaining) return last.state.remaining < state.remaining
  return state.allowed
}

export interface LocalStore extends Store {
  /**
   * Remembers the store's reply for a limit. The reply may be late.
   * @param decidedAt by the store's clock, ms since the epoch
   */
  learn(limit: Limit, state: QuotaState, decidedAt: number, receivedAt: number): void
  /**
   * Matches a late charge of the store with local units that the store had not charged, and removes that many of them.
   * @returns false if there are fewer local units than the charge
   */
  matchLateCharge(limit: Limit): boolean
}

/**
 * Creates a local store. It applies the same algorithms to `localShare` of each limit, and continues from the last reply of the store.
 *
 * Each isolate admits at most this share of the algorithm's upper bound (at least one unit), and at most as many units as the store
 * last reported as remaining.
 *
 * It does not count slots, starts no bans (but applies a ban of the store until its end), and ignores idempotency keys.
 * @param clock ms since the epoch
 */
export function createLocalStore(
  clock: () => number = systemClock,
  random: () => number = Math.random,
): LocalStore {
  const entries = new LocalEntries(random)

  /** The current state: the stricter one of the local count and the store's last reply. */
  function stateOf(entry: LocalEntry, { terms }: Limit, share: QuotaTerms, now: number) {
    const own = entry.runOut > now ? entry.state : undefined
    const { reply } = entry
    if (!reply || entry.isMerged) return own
    const { state: last, limit, burst, receivedAt } = reply
    const runOut = receivedAt + last.resetAfterMs
    if (runOut <= now) return own
    const { window } = share
    const state = stateFrom(terms.algorithm, last, receivedAt, { limit, burst, window })
    const fromReply = cutState(terms.algorithm, state, terms, share)
    const algorithm = algorithms[terms.algorithm as keyof typeof algorithms]
    const left = (state: State | undefined) => algorithm(now, share, 0, state).remaining
    // Do not mark the reply as merged here: it may outlast the local state.
    if (own && left(own) <= left(fromReply)) return own
    entry.isMerged = true
    entries.setState(entry, fromReply, Math.max(runOut, own ? entry.runOut : 0))
    return fromReply
  }

  /** How long a refusal by the store still applies, ms. A ban applies to every cost; another refusal only to this or a higher cost. */
  function refusedFor({ reply }: LocalEntry, { terms, cost }: Limit, now: number): number {
    if (!reply || cost === 0) return 0
    const { state, limit, burst, receivedAt } = reply
    const isCovered = cost >= reply.cost && terms.limit <= limit && terms.burst <= burst
    const refused = isCovered && !state.allowed && state.retryAfterMs !== null
    const waitMs = Math.max(state.bannedForMs ?? 0, refused ? state.retryAfterMs! : 0)
    return Math.max(0, receivedAt + waitMs - now)
  }

  /** Decides one limit without changing it. `charged` is its entry after the charge. */
  function check(limit: Limit, now: number) {
    const { terms, period } = limit
    if (terms.algorithm === 'concurrency') return { state: fullState(terms.limit, limit.cost) }
    const key = keyOf(limit)
    const { share, cost } = shareOf(terms, limit.cost)
    const entry = entries.get(key)
    const live = entry && stateOf(entry, limit, share, now)
    const { state, ...outcome } = algorithms[terms.algorithm](now, { ...share, period }, cost, live)
    const restMs = live ? entry!.runOut - now : Number.POSITIVE_INFINITY
    const clamp = (wait: number) => (live && !state ? Math.min(wait, restMs) : wait)
    const refusedMs = entry ? refusedFor(entry, limit, now) : 0
    const clamped: QuotaState = {
      ...outcome,
      allowed: outcome.allowed && refusedMs === 0,
      retryAfterMs:
        outcome.retryAfterMs === null ? null : Math.max(refusedMs, clamp(outcome.retryAfterMs)),
      resetAfterMs: clamp(outcome.resetAfterMs),
      nextAfterMs: clamp(outcome.nextAfterMs),
    }
    const runOut = now + outcome.resetAfterMs
    const left = outcome.remaining / capacityOf(terms.algorithm, share)
    return { state: clamped, charged: state && { key, state, runOut, left } }
  }

  function decide(request: StoreRequest, now: number): QuotaState[] {
    const { mode, limits } = request
    if (mode === 'reset') for (const limit of limits) forget(limit)
    if (mode === 'refund') for (const limit of limits) refund(limit, request.decidedAt ?? 0, now)
    const checked = limits.map((limit) =>
      check(mode === 'refund' ? { ...limit, cost: 0 } : limit, now),
    )
    if (mode !== 'take' || !checked.every(({ state }) => state.allowed)) {
      const answers = checked.map(({ state, charged }, index) => {
        if (!charged) return state
        const { allowed, retryAfterMs } = state
        return { ...check({ ...limits[index]!, cost: 0 }, now).state, allowed, retryAfterMs }
      })
      if (entries.isFull) for (const limit of limits) dropDerivedState(limit)
      entries.trim(now)
      return answers
    }
    for (const [index, { charged }] of checked.entries()) {
      if (!charged) continue
      const entry = entries.getOrAdd(charged.key, now)
      entries.setState(entry, charged.state, charged.runOut)
      entry.isOwn = true
      entry.localUnits += limits[index]!.cost
      entry.left = charged.left
      entry.until = Math.max(entry.until, charged.runOut)
    }
    entries.trim(now)
    return checked.map(({ state }) => state)
  }

  /** Drops a state that can be derived from the reply again, so that a refusal does not evict other entries. */
  function dropDerivedState(limit: Limit) {
    const entry = entries.get(keyOf(limit))
    if (!entry?.reply || entry.isOwn) return
    entries.setState(entry, undefined, 0)
    entry.isMerged = false
  }

  function forget(limit: Limit) {
    const entry = entries.get(keyOf(limit))
    if (entry) entries.remove(entry)
  }

  function refund(limit: Limit, takenAt: number, now: number) {
    const entry = entries.get(keyOf(limit))
    if (!entry?.state || entry.runOut <= now) return
    const { share, cost } = shareOf(limit.terms, limit.cost)
    const state = refunded(limit.terms.algorithm, entry.state, share, cost, takenAt, now)
    entries.setState(entry, state, entry.runOut)
    entry.localUnits = Math.max(0, entry.localUnits - limit.cost)
  }

  return {
    matchLateCharge(limit) {
      const entry = entries.get(keyOf(limit))
      if (!entry || entry.localUnits < limit.cost) return false
      entry.localUnits -= limit.cost
      return true
    },

    learn(limit, state, decidedAt, receivedAt) {
      const { terms, cost } = limit
      const key = keyOf(limit)
      // A full quota needs no entry: without one it counts as full.
      const isFull = state.resetAfterMs === 0 && !state.bannedForMs
      const entry = isFull ? entries.get(key) : entries.getOrAdd(key, receivedAt)
      if (!entry || (entry.reply && isNewer(entry.reply, state, decidedAt, receivedAt))) return
      if (!entry.isOwn || entry.runOut <= receivedAt) entries.setState(entry, undefined, 0)
      if (!entry.state) {
        entry.isOwn = false
        entry.localUnits = 0
      }
      entry.reply = { state, cost, limit: terms.limit, burst: terms.burst, decidedAt, receivedAt }
      entry.isMerged = false
      const waitMs = Math.max(state.resetAfterMs, state.bannedForMs ?? 0)
      entry.until = Math.max(entry.runOut, receivedAt + waitMs)
      entry.left = state.allowed ? state.remaining / capacityOf(terms.algorithm, terms) : 0
    },

    async decide(requests, { now = clock() } = {}) {
      let lastTakePassed = true // if false, its follows only peek
      const states = requests.map((request) => {
        if (request.mode === 'follow') {
          return decide({ limits: request.limits, mode: lastTakePassed ? 'take' : 'peek' }, now)
        }
        const states = decide(request, now)
        lastTakePassed = request.mode === 'take' && states.every(({ allowed }) => allowed)
        return states
      })
      return { decidedAt: now, states }
    },
    decideEach(lists, options) {
      return Promise.all(lists.map((requests) => this.decide(requests, options)))
    },
  }
}

const keyOf = ({ subject, terms: { tag } }: Limit) => `${tag} ${subject}`

/** The state of a limit that the local store does not count. */
const fullState = (limit: number, cost: number): QuotaState => ({
  allowed: cost <= limit,
  remaining: limit,
  retryAfterMs: cost <= limit ? 0 : null,
  resetAfterMs: 0,
  nextAfterMs: 0,
})
