import type { QuotaState } from '../../base/decision.ts'
import type { Limit, Store, StoreRequest, Terms } from '../store.ts'
import { stateFrom } from './algorithms/from-reply.ts'
import { algorithms, type QuotaTerms, type State } from './algorithms/index.ts'
import { refunded } from './algorithms/refund.ts'

/** Limits remembered at most. */
const MAX_ENTRIES = 10_000
/** Numbers kept at most in all of them (8 bytes each): a sliding log has one for every unit, and an isolate only 128 MB. */
const MAX_NUMBERS = 1_000_000
/** Entries that are compared when one has to go. */
const SAMPLES = 8

/** The store's last reply to a limit. */
interface Word {
  state: QuotaState
  cost: number
  /** The terms that its numbers go by: one key may be asked for under several plans, and a live policy may change. */
  limit: number
  burst: number
  /** When it was said, ms since the epoch by the store's clock. */
  at: number
  /** When it came, ms since the epoch by the isolate's clock. */
  receivedAt: number
}

/** A later word is newer than one that came this much earlier, in ms, whatever the store's clock says: it may have been set back. */
const MAX_DISORDER_MS = 10_000

/** Whether a word is still the last one when another comes: replies may overtake each other. Of the same millisecond the stricter holds. */
function isNewer(word: Word, state: QuotaState, at: number, receivedAt: number): boolean {
  if (receivedAt - word.receivedAt > MAX_DISORDER_MS || receivedAt < word.receivedAt) return false
  if (at !== word.at) return word.at > at
  if (word.state.remaining !== state.remaining) return word.state.remaining < state.remaining
  return state.allowed
}

/** What is known of one limit. */
interface Entry {
  key: string
  /** Its place among all, for sampling. */
  index: number
  /** How the limit stands here. */
  state: State | undefined
  /** Whether `state` has units that were charged here. */
  isOwn: boolean
  /** Units charged here that the store does not know of. */
  unpaid: number
  /** When `state` means nothing any more, ms since the epoch. */
  runOut: number
  word: Word | undefined
  /** Whether `state` includes the word. */
  isTaken: boolean
  /** When nothing that is known here matters any more, ms since the epoch. */
  until: number
  /** The part of the quota that was left at last, from 0 to 1. */
  share: number
}

export interface LocalStore extends Store {
  /**
   * Remembers how a limit stands by a reply of the store, whether in time or late.
   * @param at the store's time of the decision, ms since the epoch
   */
  learn(one: Limit, state: QuotaState, at: number, receivedAt: number): void
  /**
   * Takes a charge that the store has made late for one of the same size that was made here, and that the store does not know of.
   * @returns false where there is no such charge
   */
  pays(one: Limit): boolean
}

/**
 * Counts in this isolate's own memory while the store does not answer: the same algorithms, over `localShare` of each limit, going on from
 * the store's last reply.
 *
 * Bound: each isolate admits at most that share (and at least one unit) of the algorithm's own bound, and no more than the store last said
 * was left. It forgets when it ends. Beyond 10,000 limits it forgets one of eight chosen at random, the one with most of its quota left,
 * so that a flood of fresh keys does not make it forget an exhausted one.
 *
 * Slots are not counted, refusals lead to no ban (a ban that the store has set holds), and no call is remembered to be decided once.
 * @param clock ms since the epoch
 */
export function createLocalStore(
  clock: () => number = Date.now,
  random: () => number = Math.random,
): LocalStore {
  const entries = new Map<string, Entry>()
  const all: Entry[] = []
  let numbers = 0

  function entryOf(key: string, now: number): Entry {
    const known = entries.get(key)
    if (known) return known
    while (all.length >= MAX_ENTRIES) remove(worst(now))
    const entry: Entry = {
      key,
      index: all.length,
      state: undefined,
      isOwn: false,
      unpaid: 0,
      runOut: 0,
      word: undefined,
      isTaken: true,
      until: 0,
      share: 1,
    }
    entries.set(key, entry)
    all.push(entry)
    return entry
  }

  function remove(entry: Entry) {
    setState(entry, undefined, 0)
    entries.delete(entry.key)
    const last = all.pop()!
    if (last === entry) return
    all[entry.index] = last
    last.index = entry.index
  }

  /** The entry of a few with least to lose: one that is over, or else has most of its quota left. */
  function worst(now: number): Entry {
    const worthOf = ({ until, share }: Entry) => (until <= now ? 2 : share)
    let chosen = all[Math.floor(random() * all.length)]!
    for (let n = 1; n < SAMPLES; n++) {
      const other = all[Math.floor(random() * all.length)]!
      if (worthOf(other) > worthOf(chosen)) chosen = other
    }
    return chosen
  }

  function setState(entry: Entry, state: State | undefined, runOut: number) {
    numbers += (state?.numbers.length ?? 0) - (entry.state?.numbers.length ?? 0)
    entry.state = state
    entry.runOut = runOut
  }

  /** The state that counts now: the stricter of what was counted here and what the store said. */
  function stateOf(entry: Entry, { terms }: Limit, share: QuotaTerms, now: number) {
    const own = entry.runOut > now ? entry.state : undefined
    const { word } = entry
    if (!word || entry.isTaken) return own
    const { state: last, limit, burst, receivedAt } = word
    const runOut = receivedAt + last.resetAfterMs
    if (runOut <= now) return own
    const { window } = share
    const state = stateFrom(terms.algorithm, last, receivedAt, { limit, burst, window })
    const said = cut(terms.algorithm, state, terms, share)
    const algorithm = algorithms[terms.algorithm as keyof typeof algorithms]
    const left = (state: State | undefined) => algorithm(now, share, 0, state).remaining
    // The word may still hold when the state here has run out.
    if (own && left(own) <= left(said)) return own
    entry.isTaken = true
    setState(entry, said, Math.max(runOut, own ? entry.runOut : 0))
    return said
  }

  /** The rest of a refusal by the store, ms: of a ban, or of this cost or a higher one by these or smaller terms. */
  function refusedFor({ word }: Entry, { terms, cost }: Limit, now: number): number {
    if (!word || cost === 0) return 0
    const { state, limit, burst, receivedAt } = word
    const isCovered = cost >= word.cost && terms.limit <= limit && terms.burst <= burst
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
    return { state: clamped, charged: state && { key, state, runOut, share: left } }
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
      if (numbers > MAX_NUMBERS) for (const one of limits) release(one)
      trim(now)
      return answers
    }
    for (const [index, { charged }] of asked.entries()) {
      if (!charged) continue
      const entry = entryOf(charged.key, now)
      setState(entry, charged.state, charged.runOut)
      entry.isOwn = true
      entry.unpaid += limits[index]!.cost
      entry.share = charged.share
      entry.until = Math.max(entry.until, charged.runOut)
    }
    trim(now)
    return asked.map(({ state }) => state)
  }

  /** Drops a state that the store's word implies: a refusal must not make others go. */
  function release(one: Limit) {
    const entry = entries.get(keyOf(one))
    if (!entry?.word || entry.isOwn) return
    setState(entry, undefined, 0)
    entry.isTaken = false
  }

  function trim(now: number) {
    while (numbers > MAX_NUMBERS) remove(worst(now))
  }

  function forget(one: Limit) {
    const entry = entries.get(keyOf(one))
    if (entry) remove(entry)
  }

  function refund(one: Limit, takenAt: number, now: number) {
    const entry = entries.get(keyOf(one))
    if (!entry?.state || entry.runOut <= now) return
    const { share, cost } = shareOf(one.terms, one.cost)
    const state = refunded(one.terms.algorithm, entry.state, share, cost, takenAt, now)
    setState(entry, state, entry.runOut)
    entry.unpaid = Math.max(0, entry.unpaid - one.cost)
  }

  return {
    pays(one) {
      const entry = entries.get(keyOf(one))
      if (!entry || entry.unpaid < one.cost) return false
      entry.unpaid -= one.cost
      return true
    },

    learn(one, state, at, receivedAt) {
      const { terms, cost } = one
      // An untouched quota needs no memory: without a word it counts as full.
      const isFull = state.resetAfterMs === 0 && !state.bannedForMs
      const entry = isFull ? entries.get(keyOf(one)) : entryOf(keyOf(one), receivedAt)
      if (!entry || (entry.word && isNewer(entry.word, state, at, receivedAt))) return
      if (!entry.isOwn || entry.runOut <= receivedAt) setState(entry, undefined, 0)
      if (!entry.state) {
        entry.isOwn = false
        entry.unpaid = 0
      }
      entry.word = { state, cost, limit: terms.limit, burst: terms.burst, at, receivedAt }
      entry.isTaken = false
      const waitMs = Math.max(state.resetAfterMs, state.bannedForMs ?? 0)
      entry.until = Math.max(entry.runOut, receivedAt + waitMs)
      entry.share = state.allowed ? state.remaining / capacityOf(terms.algorithm, terms) : 0
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

/** How a limit stands of which nothing is counted. */
const untouched = (limit: number, cost: number): QuotaState => ({
  allowed: cost <= limit,
  remaining: limit,
  retryAfterMs: cost <= limit ? 0 : null,
  resetAfterMs: 0,
  nextAfterMs: 0,
})

/** The largest cost that a full quota admits. */
const capacityOf = (
  algorithm: Terms['algorithm'],
  { limit, burst }: Pick<QuotaTerms, 'limit' | 'burst'>,
) => (algorithm === 'token-bucket' ? burst : limit)

/** The share of a terms cut to its `localShare`, in whole units, at least one; and a cost that fits the terms, cut to fit them. */
function shareOf({ algorithm, limit, burst, windowMs, align, localShare }: Terms, cost: number) {
  const cut = (units: number) => Math.max(1, Math.floor(units * localShare))
  const share: QuotaTerms = { limit: cut(limit), burst: cut(burst), window: windowMs, align }
  const whole = capacityOf(algorithm, { limit, burst })
  return { share, cost: cost > whole ? cost : Math.min(cost, capacityOf(algorithm, share)) }
}

/** A state of the whole quota as one of a share of it: as much is left, but no more than the share. */
function cut(
  algorithm: Terms['algorithm'],
  state: State | undefined,
  whole: Pick<QuotaTerms, 'limit' | 'burst'>,
  share: QuotaTerms,
): State | undefined {
  const less = capacityOf(algorithm, whole) - capacityOf(algorithm, share)
  if (!state || less === 0) return state
  const [first = 0, second] = state.numbers
  switch (algorithm) {
    case 'token-bucket':
      return { ...state, numbers: [Math.max(0, first - less * share.window)] }
    case 'sliding-log':
      return { ...state, numbers: state.numbers.slice(Math.min(less, state.numbers.length)) }
    case 'sliding-window': {
      // Less in the window before, then in this one.
      const previous = Math.max(0, second! - less)
      const current = Math.max(0, first - (less - (second! - previous)))
      return { ...state, numbers: [current, previous] }
    }
    default:
      return { ...state, numbers: [Math.max(0, first - less)] }
  }
}
