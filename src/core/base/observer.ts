/**
 * The interface between the limiter and `sluice/observe`. It has types only: a Worker that does not import `sluice/observe` has none of
 * its code.
 */
import type { Decision, Fallback, KeyFault, PolicyMode } from './decision.ts'
import type { StoreErrorCode } from './errors.ts'
import type { Log } from './log.ts'

/**
 * The part that made a decision: the store, the denial cache, leased units, the shield, the isolate itself (`onStoreError`), or the
 * configuration alone (`deny`, `allow`, `onMissingKey`, or no policy that applies).
 */
export type DecidedBy = 'store' | 'cache' | 'lease' | 'shield' | 'local' | 'list'

/** One HTTP request to the store. */
export interface StoreCall {
  /** The duration. 0 until the call ends. */
  ms: number
  /** The error of a failed call. Absent until the call ends. */
  code?: StoreErrorCode
  /** The commands that Upstash bills. 0 until the call ends, and for a call without an answer. */
  billedCommands: number
  /** The number of decisions, refunds and other lists of requests that share the call. */
  lists: number
}

/** A limit of a request to the store. The fields are those of `Limit`. */
export interface SentLimit {
  subject: string
  cost: number
  terms: { algorithm: string }
  penalty?: { banMs: number; maxMs: number } | undefined
  override?: object | undefined
}

/** One call of the script: lists of requests. */
export interface SentLists {
  lists: { mode: string; limits: SentLimit[] }[][]
  /** Set if the store keeps the reply. */
  idempotency?: object | undefined
}

/** The state of a limit. The fields are those of `QuotaState`. */
export interface AnsweredState {
  allowed: boolean
  bannedForMs?: number
}

/** The answer to one list. The fields are those of `StoreResult`. */
export type ListAnswer =
  | { states: AnsweredState[][]; replayed?: true }
  | { code: StoreErrorCode; cause?: unknown }

/** A call in flight. */
export interface CallInFlight {
  call: StoreCall
  /**
   * Ends the call.
   * @param answers those of each call of the script
   * @param sendsTime true with `clock: 'edge'`
   */
  end: (answers: ListAnswer[][], sendsTime: boolean) => void
}

/** The part of one decision in the calls to the store. */
export interface StoreUse {
  /** How long the decision waited for the store, ms. */
  ms: number
  /** HTTP calls; a share of a call if several decisions were in one batch. */
  calls: number
  billedCommands: number
}

/** Measures what one decision uses of the store. */
export interface Meter {
  /** Receives each call in which the decision has a part. */
  onCall: (call: StoreCall) => void
  /** Ends the wait for the store. */
  stop: () => StoreUse
}

/** A policy that applies to the request. The fields are those of `Match`. */
export interface ObservedMatch {
  policy: {
    name: string
    mode: PolicyMode
    algorithm: string
    burst: number
    onStoreError: Fallback
    /** The name of the plan whose size applies. */
    planName?: string | undefined
  }
  partitionKey: [label: string, value: string | undefined, fault?: KeyFault][]
  cost: number
}

/** One decision, as the limiter reports it. */
export interface DecisionFact {
  decision: Decision
  /** Absent if the decision was left to the store, whose layers may hold leased units. */
  decidedBy?: DecidedBy | undefined
  /** Empty if no policy applies. */
  matches: ObservedMatch[]
  /** Absent if the decision did not need the store. */
  use: StoreUse | undefined
  /** Where the request comes from. Read only when it is needed. */
  from: { readonly colo?: string | undefined; readonly country?: string | undefined }
  /** Hashes a partition key. With `hashKeys` the result is the subject in the store. */
  hash: (partitionKey: ObservedMatch['partitionKey']) => string | Promise<string>
  env: Record<string, unknown>
  waitUntil: (promise: Promise<unknown>) => void
  /** The context that key functions get, such as Hono's. In the decision API that of the call. */
  context: unknown
}

/** A call to an endpoint that the observer answers. */
export interface ObserverCall {
  request: Request
  env: Record<string, unknown>
  waitUntil: (promise: Promise<unknown>) => void
  databases: readonly { name: string | undefined; isOpen: () => boolean }[]
}

/** Receives the facts of one limiter. Its methods never throw, and delay no request. */
export interface Observer {
  /** Called once for each request. */
  decided: (fact: DecisionFact) => void
  /**
   * Called before a decision is sent to the store.
   * @param lists the number of decisions that share the meter: each has an equal part in all of its calls, whichever shard they go to
   */
  measure: (lists?: number) => Meter
  /**
   * Called for each HTTP request to the store.
   * @param sent what it sends, by calls of the script; empty for a plain command
   */
  begin: (sent: SentLists[]) => CallInFlight
  /**
   * Answers a path after `/_sluice/v1`, such as `/stats`. The caller has the operate token.
   * @returns `undefined` for a path without an answer
   */
  answer: (path: string, call: ObserverCall) => Promise<Response | undefined>
}

/** The result of `observe()`. Each limiter creates an observer. */
export interface Observe {
  create(parts: { log: Log }): Observer
}
