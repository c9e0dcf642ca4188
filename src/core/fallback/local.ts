/** The local store: counts in the memory of one isolate while the real store does not answer (`onStoreError: 'local'`). */
import { systemClock } from '../base/clock.ts'
import type { QuotaState } from '../base/decision.ts'
import { fnv1a } from '../base/fnv.ts'
import { capacityOf, MAX_ENTRIES, MAX_PRODUCT } from '../base/units.ts'
import {
  type Algorithms,
  algorithms,
  endingIn,
  type QuotaTerms,
  resized,
  type State,
  withFloor,
} from '../connection/algorithms/index.ts'
import type { Limit, Store, StoreRequest, Terms } from '../connection/store.ts'
import { type LastReply, LocalEntries, type LocalEntry } from './entries.ts'
import { cutState, shareOf } from './share.ts'
import { refunded, stateFrom } from './states.ts'

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

interface ChargedLimit {
  key: string
  state: State
  runOut: number
  /** The fraction of the quota that remains, from 0 to 1. */
  left: number
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
 * Of values (`distinct`) it knows only those that it has admitted by itself, and takes none back.
 *
 * It does not count slots, starts no bans (but applies a ban of the store until its end), and ignores idempotency keys.
 * @param clock ms since the epoch
 * @param others algorithms of features
 */
export function createLocalStore(
  clock: () => number = systemClock,
  random: () => number = Math.random,
  others: Algorithms = {},
): LocalStore {
  const known: Algorithms = { ...algorithms, ...others }
  const entries = new LocalEntries(random)

  /** The current state: the stricter one of the local count and the store's last reply. */
  function stateOf(entry: LocalEntry, { terms }: Limit, share: QuotaTerms, now: number) {
    const own = entry.runOut > now ? entry.state : undefined
    const { reply } = entry
    if (!reply || entry.isMerged) return own
    const { state: last, limit, burst, receivedAt } = reply
    const runOut = receivedAt + last.resetAfterMs
    if (runOut <= now) return own
    const numbers = { ...last, remaining: last.remaining + (last.reserved ?? 0) }
    const state = stateFrom(terms.algorithm, numbers, receivedAt, {
      limit,
      burst,
      windowMs: share.windowMs,
    })
    const fromReply = cutState(terms.algorithm, state, terms, share)
    const algorithm = known[terms.algorithm]!
    const left = (state: State | undefined) => algorithm(now, share, 0, state).remaining
    // Do not mark the reply as merged here: it may outlast the local state.
    if (own && left(own) <= left(fromReply)) return own
    entry.isMerged = true
    entries.setState(entry, fromReply, Math.max(runOut, own ? entry.runOut : 0))
    return fromReply
  }

  /** How long a refusal by the store still applies, ms. A ban applies to every cost; another refusal only to this or a higher cost and floor, and to these values. */
  function refusedFor(
    { reply }: LocalEntry,
    { terms, cost, floor = 0, values }: Limit,
    now: number,
  ): number {
    if (!reply || cost === 0) return 0
    const { state, limit, burst, receivedAt } = reply
    const isSmaller = terms.limit <= limit && terms.burst <= burst
    const isSame = (values && hashOf(values)) === reply.values
    const isCovered = cost >= reply.cost && floor >= reply.floor && isSmaller && isSame
    const refused = isCovered && !state.allowed && state.retryAfterMs !== null
    // The whole quota is back after `resetAfterMs`: a longer wait is that for those who stand in line, which this isolate does not count.
    const refusedMs = refused ? Math.min(state.retryAfterMs!, state.resetAfterMs) : 0
    const waitMs = Math.max(state.bannedForMs ?? 0, refusedMs)
    return Math.max(0, receivedAt + waitMs - now)
  }

  /** Decides one limit without changing it. `charged` is its entry after the charge. */
  function check(limit: Limit, now: number) {
    const { terms, period, values } = limit
    if (terms.algorithm === 'concurrency') return { state: fullState(terms.limit, limit.cost) }
    const key = keyOf(limit)
    const { share, cost, floor } = shareOf(terms, limit.cost, limit.floor)
    const entry = entries.get(key)
    const live = entry && stateOf(entry, limit, share, now)
    const smaller = withFloor(terms.algorithm, share, floor)
    const outcome = known[terms.algorithm]!(now, { ...smaller, period, values }, cost, live)
    const { state, ...numbers } =
      live && !outcome.state ? endingIn(entry!.runOut - now, outcome) : outcome
    const refusedMs = entry ? refusedFor(entry, limit, now) : 0
    const { allowed, retryAfterMs } = numbers
    const reported: QuotaState = {
      ...numbers,
      allowed: allowed && refusedMs === 0,
      retryAfterMs: retryAfterMs === null ? null : Math.max(refusedMs, retryAfterMs),
    }
    const runOut = now + numbers.resetAfterMs
    const left = numbers.remaining / capacityOf(terms.algorithm, share)
    return { state: reported, charged: state && { key, state, runOut, left } }
  }

  /** The limit in the size that an operator has set, by the last reply. */
  function inForce(limit: Limit, now: number): Limit {
    const reply = limit.override && entries.get(keyOf(limit))?.reply
    const isOver = !reply || now >= reply.receivedAt + (reply.state.overriddenForMs ?? 0)
    return isOver ? limit : resized(limit, reply.state.limit)
  }

  function decide(request: StoreRequest, now: number): QuotaState[] {
    const { mode } = request
    const limits = request.limits.map((limit) => inForce(limit, now))
    if (mode === 'reset') for (const limit of limits) forget(limit)
    if (mode === 'refund') for (const limit of limits) refund(limit, request.decidedAt ?? 0, now)
    if (mode === 'debt') for (const limit of limits) charge(limit, now)
    const isSettled = mode === 'refund' || mode === 'debt'
    const checked = limits.map((limit) => check(isSettled ? { ...limit, cost: 0 } : limit, now))
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
      if (charged) keep(charged, limits[index]!.cost, now)
    }
    entries.trim(now)
    return checked.map(({ state }) => state)
  }

  function keep({ key, state, runOut, left }: ChargedLimit, cost: number, now: number) {
    const entry = entries.getOrAdd(key, now)
    entries.setState(entry, state, runOut)
    entry.isOwn = true
    entry.localUnits += cost
    entry.left = left
    entry.until = Math.max(entry.until, runOut)
  }

  /** Charges a debt. A negative floor makes room for it, up to numbers that are exact in a double. */
  function charge(limit: Limit, now: number) {
    const debt = { ...limit, floor: -roomOfDebts(limit.terms) }
    const { remaining } = check({ ...debt, cost: 0 }, now).state
    const { charged } = check({ ...debt, cost: Math.min(limit.cost, remaining) }, now)
    if (charged) keep(charged, limit.cost, now)
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
      const {
        terms,
        cost,
        floor = 0,
        values,
      } = limit.override ? resized(limit, state.limit) : limit
      const key = keyOf(limit)
      const { bannedForMs = 0, overriddenForMs = 0 } = state
      const waitMs = Math.max(state.resetAfterMs, bannedForMs, overriddenForMs)
      // A full quota needs no entry: without one it counts as full.
      const entry = waitMs === 0 ? entries.get(key) : entries.getOrAdd(key, receivedAt)
      if (!entry || (entry.reply && isNewer(entry.reply, state, decidedAt, receivedAt))) return
      const isOwn = entry.isOwn && entry.runOut > receivedAt
      if (entry.runOut > 0 && !isOwn) entries.setState(entry, undefined, 0)
      if (!entry.state) {
        entry.isOwn = false
        entry.localUnits = 0
      }
      const { limit: size, burst } = terms
      entry.reply = {
        state,
        cost,
        floor,
        values: values && hashOf(values),
        limit: size,
        burst,
        decidedAt,
        receivedAt,
      }
      entry.isMerged = false
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

/** The units of debts above the limit that the algorithm counts exactly. */
function roomOfDebts({ algorithm, limit, windowMs }: Terms): number {
  if (algorithm === 'fixed-window') return Number.MAX_SAFE_INTEGER - limit
  return algorithm === 'sliding-log' ? MAX_ENTRIES : Math.floor(MAX_PRODUCT / 2 / windowMs)
}

const hashOf = (values: readonly string[]) => fnv1a(values.join())

const keyOf = ({ subject, terms: { tag } }: Limit) => `${tag} ${subject}`

/** The state of a limit that the local store does not count. */
const fullState = (limit: number, cost: number): QuotaState => ({
  allowed: cost <= limit,
  remaining: limit,
  retryAfterMs: cost <= limit ? 0 : null,
  resetAfterMs: 0,
  nextAfterMs: 0,
})
