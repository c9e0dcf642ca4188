import type { Period } from '../base/calendar.ts'
import type { QuotaState } from '../base/decision.ts'
import type { StoreError } from '../base/errors.ts'

export type Algorithm =
  | 'fixed-window'
  | 'sliding-window'
  | 'sliding-log'
  | 'token-bucket'
  | 'concurrency'

/** How a limit counts. */
export interface Terms {
  /** Marks the state of the limit in the record of its subject. Distinct for each limit of a subject. */
  tag: string
  algorithm: Algorithm
  limit: number
  windowMs: number
  burst: number
  align: 'first-request' | 'clock'
  /** The part of limit and burst that one isolate admits without the store, above 0 and at most 1. */
  localShare: number
  /** How many units an isolate may take at once, and how long it may hold them. */
  lease?: { max: number; ttlMs: number } | undefined
}

export interface Limit {
  /** The name of the quota's record in the store. */
  subject: string
  terms: Terms
  /** Units, ≥ 0. */
  cost: number
  /** The period of a calendar window and the one after it. The store's clock says which of the two it is. */
  period?: Period
  /** The id under which slots are taken and released, `[A-Za-z0-9_-]{1,64}`. With `concurrency` only; a peek may lack it. */
  slot?: string
  penalty?: Penalty
}

/** After `after` refusals within `withinMs` a ban of `banMs`, twice as long each further time, at most `maxMs`. All ≥ 1. */
export interface Penalty {
  /** Marks its states in the record; the script adds one that ends in `-ban`. */
  tag: string
  after: number
  withinMs: number
  banMs: number
  maxMs: number
}

interface Ordinary {
  mode: /** Charges all limits if every one has room, else none. */
    | 'take'
    /** A take if the nearest earlier request of the call that is not a `follow` is an admitted take, or if there is none; else a peek. */
    | 'follow'
    /** Reads states, and never writes. */
    | 'peek'
    /** Forgets everything that was counted of each limit, including slots and bans. */
    | 'reset'
    /** Ends bans, and forgets the refusals that were counted. */
    | 'unban'
  limits: Limit[]
}

/** Returns units, never above a full quota, and releases slots. */
export interface Refund {
  mode: 'refund'
  limits: Limit[]
  /** When the units were charged, ms since the epoch: a later window is not credited. */
  decidedAt?: number
}

/** Bans by each limit's penalty from now on, replacing a ban in force. At least one of the limits has a penalty. */
interface Ban {
  mode: 'ban'
  limits: Limit[]
  /** ms ≥ 1, at most the `maxMs` of each penalty. Defaults to the penalty's `banMs`. */
  banMs?: number
}

export type StoreRequest = Ordinary | Refund | Ban

export interface StoreState extends QuotaState {
  /** Set when its shard gave no answer, while another shard did. Nothing else in this state is valid then. */
  unanswered?: Unanswered
}

/** Why a shard gave no answer for a limit. */
export interface Unanswered {
  error: StoreError
  /** Resolves with the time of the charge (ms since the epoch) if the shard turns out to have charged the limit. */
  chargedLate?: Promise<number | undefined>
}

export interface StoreReply {
  /** The store's time of the decision, ms since the epoch; of several shards the earliest. A later refund names it. */
  decidedAt: number
  /** For each request the state of its limits, in the order given. */
  states: StoreState[][]
  /**
   * Present when shards that did not answer leave the decision to the caller: how the limits stand without the charge. The caller
   * refunds the charged limits if it refuses the request.
   */
  uncharged?: StoreState[][]
  /** The reply to an earlier call with the same idempotency key. */
  replayed?: true
  /** This isolate holds units of these limits, or is about to receive some: a refusal must not be cached. */
  leased?: true
}

export type StoreResult = StoreReply | StoreError

/** Makes a call at most once: a repeated call gets the same reply, and charges nothing. */
export interface Idempotency {
  /** Names the call. Kept beside the subjects' records, so no subject may have the same name. */
  key: string
  /** Identifies the content of the call, `[A-Za-z0-9_-]{1,64}`. Another one under the same key is an `idempotency-conflict`. */
  fingerprint: string
  /** How long the reply is remembered, ms ≥ 1. */
  forMs: number
}

export interface StoreOptions {
  /** ms since the epoch; the store's own clock by default. */
  now?: number
  /** The longest that the call may take, ms. */
  deadlineMs?: number
  /** How long the caller waits by a timer of its own, ms. The call goes on until `deadlineMs`. Defaults to `deadlineMs`. */
  waitMs?: number
  idempotency?: Idempotency
  /** Keeps the isolate at work after the request is over. A call may then join a batch. */
  waitUntil?: (promise: Promise<unknown>) => void
  /** Accepts a reply in which limits of some shards have no answer. Without it the whole list fails. */
  allowPartial?: boolean
}

/** Decides requests, in order, each seeing what the earlier ones took. */
export interface Store {
  /** @throws {StoreError} when there is no answer */
  decide(requests: StoreRequest[], options?: StoreOptions): Promise<StoreReply>
  /**
   * Decides many lists, none of them empty, each as `decide` would, in order and in one round trip. Never rejects: each list has its
   * reply or its error. With an idempotency key the replies are remembered in parts, so a conflict in one part may leave the others
   * decided.
   */
  decideEach(lists: StoreRequest[][], options?: StoreOptions): Promise<StoreResult[]>
}
