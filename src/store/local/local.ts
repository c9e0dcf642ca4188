import type { LimitRow, RowState, Store, StoreRequest } from '../store.ts'
import { stateFrom } from './algorithms/from-reply.ts'
import { algorithms, type State, type Terms } from './algorithms/index.ts'
import { refunded } from './algorithms/refund.ts'

/** Limits remembered at most. */
const MAX_ENTRIES = 10_000
/** Numbers kept at most in all of them (8 bytes each): a sliding log has one for every unit, and an isolate only 128 MB. */
const MAX_NUMBERS = 1_000_000
/** Entries that are compared when one has to go. */
const SAMPLES = 8

/** The store's last reply to a limit. */
interface Word {
  row: RowState
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
function isNewer(word: Word, row: RowState, at: number, receivedAt: number): boolean {
  if (receivedAt - word.receivedAt > MAX_DISORDER_MS || receivedAt < word.receivedAt) return false
  if (at !== word.at) return word.at > at
  if (word.row.remaining !== row.remaining) return word.row.remaining < row.remaining
  return row.allowed
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
  learn(row: LimitRow, state: RowState, at: number, receivedAt: number): void
  /**
   * Takes a charge that the store has made late for one of the same size that was made here, and that the store does not know of.
   * @returns false where there is no such charge
   */
  pays(row: LimitRow): boolean
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
  function stateOf(entry: Entry, { policy }: LimitRow, terms: Terms, now: number) {
    const own = entry.runOut > now ? entry.state : undefined
    const { word } = entry
    if (!word || entry.isTaken) return own
    const { row, limit, burst, receivedAt } = word
    const runOut = receivedAt + row.resetAfterMs
    if (runOut <= now) return own
    const { window } = terms
    const state = stateFrom(policy.algorithm, row, receivedAt, { limit, burst, window })
    const said = cut(policy.algorithm, state, policy, terms)
    const algorithm = algorithms[policy.algorithm as keyof typeof algorithms]
    const left = (state: State | undefined) => algorithm(now, terms, 0, state).remaining
    // The word may still hold when the state here has run out.
    if (own && left(own) <= left(said)) return own
    entry.isTaken = true
    setState(entry, said, Math.max(runOut, own ? entry.runOut : 0))
    return said
  }

  /** The rest of a refusal by the store, ms: of a ban, or of this cost or a higher one by these or smaller terms. */
  function refusedFor({ word }: Entry, { policy, cost }: LimitRow, now: number): number {
    if (!word || cost === 0) return 0
    const { row, limit, burst, receivedAt } = word
    const isCovered = cost >= word.cost && policy.limit <= limit && policy.burst <= burst
    const refused = isCovered && !row.allowed && row.retryAfterMs !== null
    const waitMs = Math.max(row.bannedForMs ?? 0, refused ? row.retryAfterMs! : 0)
    return Math.max(0, receivedAt + waitMs - now)
  }

  function ask(row: LimitRow, now: number) {
    const { policy, period } = row
    if (policy.algorithm === 'concurrency') return { row: untouched(policy.limit, row.cost) }
    const key = keyOf(row)
    const { terms, cost } = shareOf(policy, row.cost)
    const entry = entries.get(key)
    const live = entry && stateOf(entry, row, terms, now)
    const { state, ...outcome } = algorithms[policy.algorithm](
      now,
      { ...terms, period },
      cost,
      live,
    )
    const left = live ? entry!.runOut - now : Number.POSITIVE_INFINITY
    const clamp = (wait: number) => (live && !state ? Math.min(wait, left) : wait)
    const refusedMs = entry ? refusedFor(entry, row, now) : 0
    const clamped: RowState = {
      ...outcome,
      allowed: outcome.allowed && refusedMs === 0,
      retryAfterMs:
        outcome.retryAfterMs === null ? null : Math.max(refusedMs, clamp(outcome.retryAfterMs)),
      resetAfterMs: clamp(outcome.resetAfterMs),
      nextAfterMs: clamp(outcome.nextAfterMs),
    }
    const ownRunOut = now + outcome.resetAfterMs
    const runOut =
      live && policy.algorithm === 'token-bucket'
        ? sharedRunOut(entry!.runOut, ownRunOut, cost, terms, now)
        : ownRunOut
    const share = outcome.remaining / capacityOf(policy.algorithm, terms)
    return { row: clamped, charged: state && { key, state, runOut, share } }
  }

  function decide({ mode, rows, receipt = 0 }: StoreRequest, now: number): RowState[] {
    if (mode === 'reset') for (const row of rows) forget(row)
    if (mode === 'refund') for (const row of rows) refund(row, receipt, now)
    const asked = rows.map((row) => ask(mode === 'refund' ? { ...row, cost: 0 } : row, now))
    if (mode !== 'take' || !asked.every(({ row }) => row.allowed)) {
      const answers = asked.map(({ row, charged }, index) => {
        if (!charged) return row
        const { allowed, retryAfterMs } = row
        return { ...ask({ ...rows[index]!, cost: 0 }, now).row, allowed, retryAfterMs }
      })
      if (numbers > MAX_NUMBERS) for (const row of rows) release(row)
      trim(now)
      return answers
    }
    for (const [index, { charged }] of asked.entries()) {
      if (!charged) continue
      const entry = entryOf(charged.key, now)
      setState(entry, charged.state, charged.runOut)
      entry.isOwn = true
      entry.unpaid += rows[index]!.cost
      entry.share = charged.share
      entry.until = Math.max(entry.until, charged.runOut)
    }
    trim(now)
    return asked.map(({ row }) => row)
  }

  /** Drops a state that the store's word implies: a refusal must not make others go. */
  function release(row: LimitRow) {
    const entry = entries.get(keyOf(row))
    if (!entry?.word || entry.isOwn) return
    setState(entry, undefined, 0)
    entry.isTaken = false
  }

  function trim(now: number) {
    while (numbers > MAX_NUMBERS) remove(worst(now))
  }

  function forget(row: LimitRow) {
    const entry = entries.get(keyOf(row))
    if (entry) remove(entry)
  }

  function refund(row: LimitRow, takenAt: number, now: number) {
    const entry = entries.get(keyOf(row))
    if (!entry?.state || entry.runOut <= now) return
    const { terms, cost } = shareOf(row.policy, row.cost)
    const state = refunded(row.policy.algorithm, entry.state, terms, cost, takenAt, now)
    setState(entry, state, entry.runOut)
    entry.unpaid = Math.max(0, entry.unpaid - row.cost)
  }

  return {
    pays(row) {
      const entry = entries.get(keyOf(row))
      if (!entry || entry.unpaid < row.cost) return false
      entry.unpaid -= row.cost
      return true
    },

    learn(row, state, at, receivedAt) {
      const { policy, cost } = row
      // An untouched quota needs no memory: without a word it counts as full.
      const isFull = state.resetAfterMs === 0 && !state.bannedForMs
      const entry = isFull ? entries.get(keyOf(row)) : entryOf(keyOf(row), receivedAt)
      if (!entry || (entry.word && isNewer(entry.word, state, at, receivedAt))) return
      if (!entry.isOwn || entry.runOut <= receivedAt) setState(entry, undefined, 0)
      if (!entry.state) {
        entry.isOwn = false
        entry.unpaid = 0
      }
      entry.word = { row: state, cost, limit: policy.limit, burst: policy.burst, at, receivedAt }
      entry.isTaken = false
      const waitMs = Math.max(state.resetAfterMs, state.bannedForMs ?? 0)
      entry.until = Math.max(entry.runOut, receivedAt + waitMs)
      entry.share = state.allowed ? state.remaining / capacityOf(policy.algorithm, policy) : 0
    },

    async decide(requests, { now = clock() } = {}) {
      let passed = true // whether the last request that is not a shadow did: else its shadows only look
      const replies = requests.map((request) => {
        if (request.mode === 'shadow') {
          return decide({ ...request, mode: passed ? 'take' : 'peek' }, now)
        }
        const rows = decide(request, now)
        passed = request.mode === 'take' && rows.every(({ allowed }) => allowed)
        return rows
      })
      return { now, requests: replies }
    },
    decideEach(lists, options) {
      return Promise.all(lists.map((requests) => this.decide(requests, options)))
    },
  }
}

const keyOf = ({ subject, policy: { tag } }: LimitRow) => `${tag} ${subject}`

/** How a limit stands of which nothing is counted. */
const untouched = (limit: number, cost: number): RowState => ({
  allowed: cost <= limit,
  remaining: limit,
  retryAfterMs: cost <= limit ? 0 : null,
  resetAfterMs: 0,
  nextAfterMs: 0,
})

const isBucket = (algorithm: LimitRow['policy']['algorithm']) =>
  algorithm === 'token-bucket' || algorithm === 'gcra'

/** The largest cost that a full quota admits. */
const capacityOf = (
  algorithm: LimitRow['policy']['algorithm'],
  { limit, burst }: Pick<Terms, 'limit' | 'burst'>,
) => (isBucket(algorithm) ? burst : limit)

/** The terms of a policy cut to its `localShare`, in whole units, at least one; and a cost that fits the policy, cut to fit them. */
function shareOf(
  { algorithm, limit, burst, windowMs, align, localShare }: LimitRow['policy'],
  cost: number,
) {
  const cut = (units: number) => Math.max(1, Math.floor(units * localShare))
  const terms: Terms = { limit: cut(limit), burst: cut(burst), window: windowMs, align }
  const whole = capacityOf(algorithm, { limit, burst })
  return { terms, cost: cost > whole ? cost : Math.min(cost, capacityOf(algorithm, terms)) }
}

/**
 * The run-out of a token bucket that several plans share, after a charge under one of them: lua/token_bucket.lua has the rule and its
 * reasons.
 */
function sharedRunOut(stored: number, own: number, cost: number, terms: Terms, now: number) {
  const { limit, window, burst } = terms
  const flowsMs = (cost * window) / limit
  if (stored + Math.floor(flowsMs) <= own) return own
  const latest = now + 2 * Math.ceil((burst * window) / limit)
  return Math.max(stored, Math.min(latest, stored + Math.ceil(flowsMs)))
}

/** A state of the whole quota as one of a share of it: as much is left, but no more than the share. */
function cut(
  algorithm: LimitRow['policy']['algorithm'],
  state: State | undefined,
  whole: Pick<Terms, 'limit' | 'burst'>,
  terms: Terms,
): State | undefined {
  const less = capacityOf(algorithm, whole) - capacityOf(algorithm, terms)
  if (!state || less === 0) return state
  const [first = 0, second] = state.numbers
  switch (algorithm) {
    case 'token-bucket':
      return { ...state, numbers: [Math.min(first, terms.burst * terms.window)] }
    case 'gcra':
      return { ...state, numbers: [Math.max(0, first - less * terms.window)] }
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
