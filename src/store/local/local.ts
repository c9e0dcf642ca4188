import type { QuotaState } from '../../base/decision.ts'
import type { Limit, Store, StoreRequest } from '../store.ts'
import { stateFrom } from './algorithms/from-reply.ts'
import { algorithms, type QuotaTerms, type State } from './algorithms/index.ts'
import { refunded } from './algorithms/refund.ts'
import { type LastReply, LocalEntries, type LocalEntry } from './entries.ts'
import { capacityOf, cutState, shareOf } from './share.ts'

/** A later reply is newer than one that came this much earlier, in ms, whatever the store's clock says: it may have been set back. */
const MAX_DISORDER_MS = 10_000

/** Whether the last reply is newer than another one that comes now: replies may overtake each other. Of equal times the stricter holds. */
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
   * Remembers a reply of the store to a limit, in time or late.
   * @param decidedAt by the store's clock, ms since the epoch
   */
  learn(limit: Limit, state: QuotaState, decidedAt: number, receivedAt: number): void
  /**
   * Matches a late charge by the store with a charge of the same size that was made here and that the store does not know of.
   * @returns false if there is no such charge
   */
  pays(limit: Limit): boolean
}

/**
 * Counts in the isolate's memory while the store does not answer: the same algorithms, over `localShare` of each limit, continuing from
 * the store's last reply.
 *
 * Bound: each isolate admits at most that share (and at least one unit) of the algorithm's own bound, and no more than the store last
 * reported as left.
 *
 * Does not count slots, does not ban (a ban that the store has set holds), and ignores idempotency keys.
 * @param clock ms since the epoch
 */
export function createLocalStore(
  clock: () => number = Date.now,
  random: () => number = Math.random,
): LocalStore {
  const entries = new LocalEntries(random)

  /** The state that counts now: the stricter of what was counted here and what the store said. */
  function stateOf(entry: LocalEntry, { terms }: Limit, share: QuotaTerms, now: number) {
    const own = entry.runOut > now ? entry.state : undefined
    const { reply } = entry
    if (!reply || entry.isMerged) return own
    const { state: last, limit, burst, receivedAt } = reply
    const runOut = receivedAt + last.resetAfterMs
    if (runOut <= now) return own
    const { window } = share
    const state = stateFrom(terms.algorithm, last, receivedAt, { limit, burst, window })
    const said = cutState(terms.algorithm, state, terms, share)
    const algorithm = algorithms[terms.algorithm as keyof typeof algorithms]
    const left = (state: State | undefined) => algorithm(now, share, 0, state).remaining
    // The reply may still hold when the state here has run out.
    if (own && left(own) <= left(said)) return own
    entry.isMerged = true
    entries.setState(entry, said, Math.max(runOut, own ? entry.runOut : 0))
    return said
  }

  /** The rest of a refusal by the store, ms: a ban, or a refusal that also covers this cost and these terms. */
  function refusedFor({ reply }: LocalEntry, { terms, cost }: Limit, now: number): number {
    if (!reply || cost === 0) return 0
    const { state, limit, burst, receivedAt } = reply
    const isCovered = cost >= reply.cost && terms.limit <= limit && terms.burst <= burst
    const refused = isCovered && !state.allowed && state.retryAfterMs !== null
    const waitMs = Math.max(state.bannedForMs ?? 0, refused ? state.retryAfterMs! : 0)
    return Math.max(0, receivedAt + waitMs - now)
  }

  function ask(one: Limit, now: number) {
    const { terms, period } = one
    if (terms.algorithm === 'concurrency') return { state: untouched(terms.limit, one.cost) }
    const key = keyOf(one)
    const { share, cost } = shareOf(terms, one.cost)
    const entry = entries.get(key)
    const live = entry && stateOf(entry, one, share, now)
    const { state, ...outcome } = algorithms[terms.algorithm](now, { ...share, period }, cost, live)
    const restMs = live ? entry!.runOut - now : Number.POSITIVE_INFINITY
    const clamp = (wait: number) => (live && !state ? Math.min(wait, restMs) : wait)
    const refusedMs = entry ? refusedFor(entry, one, now) : 0
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
    if (mode === 'reset') for (const one of limits) forget(one)
    if (mode === 'refund') for (const one of limits) refund(one, request.decidedAt ?? 0, now)
    const asked = limits.map((one) => ask(mode === 'refund' ? { ...one, cost: 0 } : one, now))
    if (mode !== 'take' || !asked.every(({ state }) => state.allowed)) {
      const answers = asked.map(({ state, charged }, index) => {
        if (!charged) return state
        const { allowed, retryAfterMs } = state
        return { ...ask({ ...limits[index]!, cost: 0 }, now).state, allowed, retryAfterMs }
      })
      if (entries.isFull) for (const one of limits) release(one)
      entries.trim(now)
      return answers
    }
    for (const [index, { charged }] of asked.entries()) {
      if (!charged) continue
      const entry = entries.getOrAdd(charged.key, now)
      entries.setState(entry, charged.state, charged.runOut)
      entry.isOwn = true
      entry.unpaid += limits[index]!.cost
      entry.left = charged.left
      entry.until = Math.max(entry.until, charged.runOut)
    }
    entries.trim(now)
    return asked.map(({ state }) => state)
  }

  /** Drops a state that the store's reply implies: a refusal must not evict others. */
  function release(one: Limit) {
    const entry = entries.get(keyOf(one))
    if (!entry?.reply || entry.isOwn) return
    entries.setState(entry, undefined, 0)
    entry.isMerged = false
  }

  function forget(one: Limit) {
    const entry = entries.get(keyOf(one))
    if (entry) entries.remove(entry)
  }

  function refund(one: Limit, takenAt: number, now: number) {
    const entry = entries.get(keyOf(one))
    if (!entry?.state || entry.runOut <= now) return
    const { share, cost } = shareOf(one.terms, one.cost)
    const state = refunded(one.terms.algorithm, entry.state, share, cost, takenAt, now)
    entries.setState(entry, state, entry.runOut)
    entry.unpaid = Math.max(0, entry.unpaid - one.cost)
  }

  return {
    pays(one) {
      const entry = entries.get(keyOf(one))
      if (!entry || entry.unpaid < one.cost) return false
      entry.unpaid -= one.cost
      return true
    },

    learn(one, state, decidedAt, receivedAt) {
      const { terms, cost } = one
      // An untouched quota needs no memory: without a reply it counts as full.
      const isFull = state.resetAfterMs === 0 && !state.bannedForMs
      const entry = isFull ? entries.get(keyOf(one)) : entries.getOrAdd(keyOf(one), receivedAt)
      if (!entry || (entry.reply && isNewer(entry.reply, state, decidedAt, receivedAt))) return
      if (!entry.isOwn || entry.runOut <= receivedAt) entries.setState(entry, undefined, 0)
      if (!entry.state) {
        entry.isOwn = false
        entry.unpaid = 0
      }
      const { limit, burst } = terms
      entry.reply = { state, cost, limit, burst, decidedAt, receivedAt }
      entry.isMerged = false
      const waitMs = Math.max(state.resetAfterMs, state.bannedForMs ?? 0)
      entry.until = Math.max(entry.runOut, receivedAt + waitMs)
      entry.left = state.allowed ? state.remaining / capacityOf(terms.algorithm, terms) : 0
    },

    async decide(requests, { now = clock() } = {}) {
      let passed = true // whether the last take did: else the requests that follow it only peek
      const states = requests.map((request) => {
        if (request.mode === 'follow') {
          return decide({ limits: request.limits, mode: passed ? 'take' : 'peek' }, now)
        }
        const states = decide(request, now)
        passed = request.mode === 'take' && states.every(({ allowed }) => allowed)
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

/** The state of a limit that is not counted. */
const untouched = (limit: number, cost: number): QuotaState => ({
  allowed: cost <= limit,
  remaining: limit,
  retryAfterMs: cost <= limit ? 0 : null,
  resetAfterMs: 0,
  nextAfterMs: 0,
})
