import type { StoreError } from '../base/errors.ts'
import type { Policy } from '../config/parse.ts'

/** One limit that a request has to meet. */
export interface LimitRow {
  /** Whose quota: the name of the record in the store. */
  subject: string
  /** The rule; its tag marks the state in the record. Idempotency per subject and request. */
  policy: Pick<Policy, 'tag' | 'limit' | 'windowMs' | 'burst' | 'align' | 'localShare'> & {
    algorithm: Policy['algorithm'] | 'concurrency'
    lease?: Policy['lease']
  }
  /** Units, ≥ 0. */
  cost: number
  /**
   * For a fixed window by the calendar: start and end of this period, and the end of the next, ms since the epoch. The store's clock
   * says which of them it is.
   */
  period?: [start: number, end: number, nextEnd: number]
  /** For `concurrency`: whose slots are taken or given back, `[A-Za-z0-9_-]{1,64}`. Only a `look` may lack it. */
  slot?: string
  /** What refusals of this row lead to. */
  penalty?: Penalty
}

/** Refused `after` times within `withinMs`: banned for `banMs`, twice as long each further time, at most `maxMs`. All ≥ 1. */
export interface Penalty {
  /** Marks its states in the record, as the policy's does; the script adds one that ends in `-ban`. */
  tag: string
  after: number
  withinMs: number
  banMs: number
  maxMs: number
}

/** Rows that pass together or not at all. */
export interface StoreRequest {
  /**
   * `take` charges if all rows have room; `look` never writes; `refund` returns units, never above a full quota.
   * `shadow` is a `take` if the nearest request before it in the call that is not itself `shadow` is an admitted `take`,
   * or if there is none; else a `look`.
   * For operators, each a `look` of all that it does not name: `reset` forgets what was counted of each row, slots and
   * bans too; `ban` bans by each row's penalty from now on, whoever is banned already, too; `unban` ends bans and forgets
   * the refusals counted.
   */
  mode: 'take' | 'peek' | 'refund' | 'shadow' | 'reset' | 'ban' | 'unban'
  /** For `ban`, one of them at least with a penalty. */
  rows: LimitRow[]
  /** For `refund`: the time at which the units were taken, so that a later window is not credited. */
  receipt?: number
  /** For `ban`: how long, ms ≥ 1, at most the `maxMs` of each penalty. Defaults to the penalty's own `banMs`. */
  banMs?: number
}

/** How one row stands. Durations are milliseconds from the decision on. */
export interface RowState {
  /** Whether this row by itself had room, and nobody is banned. */
  allowed: boolean
  remaining: number
  /** `null` when this cost can never be admitted. */
  retryAfterMs: number | null
  resetAfterMs: number
  nextAfterMs: number
  /** The rest of a ban, > 0; absent without one. */
  bannedForMs?: number
  /**
   * By the clock of its own database, ms since the epoch, where several decided, or a lease beside one: the receipt for this row.
   * Absent in what was refused, and where one decided.
   */
  at?: number
  /** Why its database gave no answer, where another of several did: then nothing else here means anything. */
  unanswered?: StoreError
}

/** The answer to one call. */
export interface StoreReply {
  /** The store's time of the decision, ms since the epoch: the receipt for a later refund. Of several databases the earliest. */
  now: number
  /** For each request, its rows, in the order given. */
  requests: RowState[][]
  /** Not decided now: it is the answer to an earlier call (`StoreOptions.once`). */
  replayed?: true
  /** Units of these limits are held by this isolate, or on their way to it: a refusal says nothing of later. */
  leased?: true
}

/** A call that is decided once: whoever repeats it gets the same answer, and nothing is charged again. */
export interface Idempotency {
  /** Names the call. Kept beside the subjects' records, so that no subject may have the same name. */
  key: string
  /** Of all that the call asks, `[A-Za-z0-9_-]{1,64}`: another under the same key is an error, `idempotency-conflict`. */
  fingerprint: string
  /** How long the answer is remembered, ms ≥ 1. */
  forMs: number
}

export interface StoreOptions {
  /** ms since the epoch; the store's own clock by default. */
  now?: number
  /** The longest to wait, in ms; the store's own by default. */
  deadlineMs?: number
  /**
   * How long the caller waits by a timer of its own, in ms. The call goes on until `deadlineMs`, so that a late reply is still of use.
   * Defaults to `deadlineMs`.
   */
  waitMs?: number
  /** Decides it once, however often it is sent. */
  once?: Idempotency
  /** Keeps the isolate at work on what is under way when the request is over. A call may then travel with others. */
  waitUntil?: (promise: Promise<unknown>) => void
  /**
   * For a store of several databases: whether a request may pass of which these rows got no answer. Asked where all others have room.
   * Without it a list has an error as soon as one row of it has no answer.
   * @param index of the list, of `decideEach`
   */
  unanswered?: (rows: LimitRow[], index: number) => Promise<boolean>
}

/** Decides requests, in order, each seeing what the earlier ones took. */
export interface Store {
  /** @throws {StoreError} when there is no answer */
  decide(requests: StoreRequest[], options?: StoreOptions): Promise<StoreReply>
  /**
   * Decides many lists, each as `decide` would, in order and in one round trip. Never rejects: each list has its reply, or the
   * error that stands for it. None of them is empty. With `once` the answers to all of them are remembered, in parts: of a
   * conflict in one part the others may know nothing, and be decided.
   */
  decideEach(lists: StoreRequest[][], options?: StoreOptions): Promise<(StoreReply | StoreError)[]>
}
