/** The interface of a store, which decides requests: it charges limits, refunds units, and reports how limits stand. Each layer is a store. */
import type { Period } from '../base/calendar.ts'
import type { Fallback, PolicyMode, QuotaState } from '../base/decision.ts'
import { StoreError, type StoreErrorCode } from '../base/errors.ts'

export { LATE_MS } from '../base/commands.ts'

export type Algorithm =
  | 'fixed-window'
  | 'sliding-window'
  | 'sliding-log'
  | 'token-bucket'
  | 'concurrency'
  | 'distinct'

export interface Terms {
  /** Identifies the state of this limit within the record of its subject. Unique for each limit of a subject. */
  tag: string
  algorithm: Algorithm
  limit: number
  windowMs: number
  burst: number
  align: 'first-request' | 'clock'
  /** The fraction of `limit` and `burst` that one isolate admits without the store, above 0 and at most 1. */
  localShare: number
  /** An isolate may take up to `max` units in advance, and hold them for `ttlMs`. */
  lease?: { max: number; ttlMs: number } | undefined
  /** A request may wait for so long until it has room, ms. */
  wait?: number | undefined
  /** A limit refuses requests only with `enforce`. Absent if the limit belongs to no policy. */
  mode?: PolicyMode
  /** How a request is decided if the database does not answer. Absent if the limit belongs to no policy. */
  onStoreError?: Fallback
  /** True if the client has a limit of its own, so that there may be any number of limits. A compiled script is not worth it. */
  isOwn?: true | undefined
}

export interface Limit {
  /** The name of the record in the store that has the state of this limit. */
  subject: string
  terms: Terms
  /** The units that the request takes, ≥ 0. */
  cost: number
  /** The units that the request must leave free, at most the whole quota. Defaults to 0. */
  floor?: number
  /** The current period of a calendar window, and the next one. The clock of the store selects one of them. */
  period?: Period
  /** The id for taking and releasing slots, `[A-Za-z0-9_-]{1,64}`. Required with `concurrency`, except for a peek. */
  slot?: string
  /** The digests of the values of the request, each `[A-Za-z0-9_-]{1,64}` and each once, at most `cost`. Required with `distinct`, except for a peek. */
  values?: readonly string[]
  penalty?: Penalty
  /** Set if an operator may have set another limit for the subject. It replaces `limit` of the terms, and the floor. */
  override?: Override
}

/** How the terms of a limit depend on its size, for a limit of an operator. */
export interface Override {
  /** The part of the quota that the request must leave free, from 0 to 1. */
  share: number
  /** True if the burst equals the limit. */
  scalesBurst: boolean
}

/** Bans a subject for `banMs` after `after` refusals within `withinMs`. Each further ban is twice as long, up to `maxMs`. All are ≥ 1. */
export interface Penalty {
  /** Identifies the count of refusals in the record. The script stores the ban under this tag with the suffix `-ban`. */
  tag: string
  after: number
  withinMs: number
  banMs: number
  maxMs: number
  /** Operators can read the list of its bans. */
  list?: boolean
}

interface Ordinary {
  mode: /** Charges all limits if all of them admit their cost; otherwise charges none. */
    | 'take'
    /** Acts as a take if the nearest earlier request that is no `follow` is an admitted take, or there is none; otherwise as a peek. */
    | 'follow'
    /** Reads the states. Never writes. */
    | 'peek'
    /** Deletes all counts of each limit, including slots and bans. Keeps limits of operators. */
    | 'reset'
    /** Deletes the limit that an operator has set. */
    | 'restore'
    /** Ends bans, and deletes the count of refusals. */
    | 'unban'
    /** Takes the ticket of a request out of its lines. */
    | 'leave'
  limits: Limit[]
  /** Lets the request stand in the lines of its limits with `wait`. Required with `leave`. Without it a `take` overtakes those who wait. */
  ticket?: Ticket
}

/**
 * The place of a request in the lines of its limits. It is no charge: it keeps the units of earlier requests free for them. A `take` that only
 * these limits refuse gets its ticket if `retryAfterMs` of each is at most `leftMs`; any other `take` gives it back.
 */
export interface Ticket {
  /** `[A-Za-z0-9]{1,32}` */
  id: string
  /** How long the request may still wait, ms. */
  leftMs: number
  waitedMs: number
  /** True if the isolate has no room for it: it gets no ticket, and its refusal does not count towards a ban. */
  isFull?: boolean
}

export interface Correction {
  mode: /** Refunds units, at most up to a full quota, and releases slots. */
    | 'refund'
    /**
     * Charges units that were already used, even beyond the limit: at most 10,000 entries in a log, 2^53 - 1 in a fixed window, and 2^53 / 3
     * for the count of a sliding window times the window. Units beyond are not charged. Not for `concurrency` and `distinct`.
     */
    | 'debt'
  limits: Limit[]
  /** The time of the charge, ms since the epoch. A window that began later gets no refund. */
  decidedAt?: number
  /** How the charge was answered without the database: `fallback` of its state. */
  fallback?: FallenBack
}

/** Starts a ban for each limit that has a penalty, and replaces a ban in force. At least one of the limits must have a penalty. */
interface Ban {
  mode: 'ban'
  limits: Limit[]
  /** The length of the ban, ms ≥ 1, at most the `maxMs` of each penalty. Defaults to the `banMs` of the penalty. */
  banMs?: number
}

/** Sets another limit for the subject of each limit that has `override`, for a time. Replaces an earlier one. */
interface Resize {
  mode: 'override'
  limits: Limit[]
  /** The limit in units, ≥ 1, within the bounds of the terms. */
  units: number
  /** ms ≥ 1 */
  forMs: number
}

export type StoreRequest = Ordinary | Correction | Ban | Resize

export interface StoreState extends QuotaState {
  /** Set if `onStoreError` has answered, because the database of this limit has not. The numbers are then not those of the quota. */
  fallback?: FallenBack
}

/** How `onStoreError` has answered for a limit. A correction of its charge must repeat it. */
export interface FallenBack {
  by: Fallback
  error?: StoreError
  /** When the isolate has counted the units by itself, ms since the epoch. */
  localAt?: number
  /** Resolves with the time of the charge (ms since the epoch) if the database has charged the limit nevertheless. */
  late?: Promise<number | undefined>
}

export interface StoreReply {
  /** The time of the decision by the store's clock, ms since the epoch; of several parts the earliest. Refunds refer to it. */
  decidedAt: number
  /** The states of the limits of each request, in the order of the call. */
  states: StoreState[][]
  /** This is the stored reply of an earlier call with the same idempotency key. */
  replayed?: true
  /** This isolate holds leased units of these limits, or may soon receive some. Do not cache a refusal. */
  leased?: true
}

export type StoreResult = StoreReply | StoreError

/** Makes a call idempotent: a repeated call gets the same reply and charges nothing. */
export interface Idempotency {
  /** Names the call. Shares the key space of the subjects, so no subject may have the same name. */
  key: string
  /** A hash of the call's content and its terms, `[A-Za-z0-9_-]{1,64}`. The same key with another one is an `idempotency-conflict`. */
  fingerprint: string
  /** How long the store keeps the reply, ms ≥ 1. */
  forMs: number
}

/** How long a caller waits if it does not say so, ms. */
export const DEADLINE_MS = 300

/** The deadline of a refund, ms. It is long because no request waits for it, and a failed refund blocks the units until they expire. */
export const REFUND_MS = 5_000

/** The wait of one caller. All layers use its timer, because another one would cost a request 10 µs. */
export interface Deadline {
  /** Runs a task if the caller still waits after `ms`. Replaces the task before. */
  at(ms: number, task: () => void): void
}

/** One HTTP request to the store. Its numbers change until it ends. */
export interface StoreCall {
  /** 0 until the call ends. */
  ms: number
  code?: StoreErrorCode
  /** The commands that Upstash bills. 0 until the call ends, and for a call without an answer. */
  billedCommands: number
  /** The number of decisions, refunds and other lists of requests that share the call. */
  lists: number
}

export interface StoreOptions {
  /** The time of the decision, ms since the epoch. Defaults to the clock of the store. */
  now?: number | undefined
  /** How long the caller waits for the reply, ms. The call may run `LATE_MS` longer. Defaults to `DEADLINE_MS`. */
  deadlineMs?: number | undefined
  idempotency?: Idempotency | undefined
  /** Keeps the isolate alive after the request ends. Required for a call to join a batch. */
  waitUntil?: ((promise: Promise<unknown>) => void) | undefined
  /** The wait of the caller. Absent if several callers share the call. */
  deadline?: Deadline | undefined
  /** Called for each HTTP request that is sent for this caller. */
  onCall?: ((call: StoreCall) => void) | undefined
  /** Lets `onStoreError` of the policies answer if the database does not. Defaults to an error. */
  fallback?: boolean | undefined
}

/** Called after the refund of a request that another database has refused, with the error if the refund failed. */
export type OnRefund = (subjects: string[], error?: StoreError) => void

/** Decides lists of requests. The requests of a list are decided in order, and each sees the charges of the earlier ones. */
export interface Store {
  /** @throws {StoreError} if the store does not answer */
  decide(requests: StoreRequest[], options?: StoreOptions): Promise<StoreReply>
  /**
   * Decides many lists in order, in one round trip, each as `decide` would. No list may be empty. Never rejects: each list gets its reply or
   * its error. With an idempotency key, a conflict in one call of the script may leave the lists of other calls decided.
   */
  decideEach(lists: StoreRequest[][], options: StoreOptions): Promise<StoreResult[]>
}

export const storeBy = (decideEach: Store['decideEach']): Store => ({
  async decide(requests, options = {}) {
    const [reply] = await decideEach([requests], options)
    if (reply instanceof StoreError) throw reply
    return reply!
  },
  decideEach,
})
