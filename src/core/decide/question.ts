/** The types of the step `decide`: its inputs, its parts and its results. */
import type { Decision, LimitState } from '../base/decision.ts'
import type { StoreError } from '../base/errors.ts'
import type { Part } from '../base/part.ts'
import type { RuntimeContext } from '../base/runtime.ts'
import type { Health } from '../connection/breaker.ts'
import type { Idempotency, Limit, Store, StoreReply, Ticket } from '../connection/store.ts'
import type { DenialCache } from './denial-cache.ts'
import type { Naming, PolicyLimit } from './limit.ts'
import type { Match, Matched } from './matched.ts'
import type { DecidedBy, Observer, StoreUse } from './observer.ts'
import type { Charges } from './settle.ts'

export type { Idempotency } from '../connection/store.ts'

export interface LimiterParts extends Naming {
  /** Answers calls with the option `fallback` also if the database does not: see fallback.ts. */
  store: Store
  /** Undefined if every decision must call the store. */
  denialCache?: DenialCache | undefined
  /** Returns the refusal of the shield, if it refuses. Undefined without a shield. */
  shield?: ((key: Part[]) => Promise<Decision | undefined>) | undefined
  /** Receives the errors of calls that no request waits for. */
  onStoreError: (error: StoreError) => void
  /** Undefined without an observer. */
  observer?: Observer | undefined
  /** Undefined if no request waits. */
  waiting?: Waiting | undefined
}

/** Lets requests wait for their turn. */
export interface Waiting {
  /** @returns `undefined` for a request, of the question `index` of its call, that may not wait */
  enter(
    pending: Pending,
    parts: LimiterParts,
    options: DecideOptions,
    index: number,
  ): WaitingRequest | undefined
  /** Units of these limits have come back. */
  wake(limits: readonly Limit[]): void
}

export interface WaitingRequest {
  /** Its place in the lines of its limits. Each call of the store needs it. */
  ticket: Ticket
  /**
   * Waits while only the lines of its limits refuse the request.
   * @param again asks the store again, for the n-th time
   */
  wait(first: StoreAnswer, again: (n: number) => Promise<StoreAnswer>): Outcome | Promise<Outcome>
}

export interface StoreAnswer {
  reply: StoreReply
  outcome: Outcome
}

export interface Database {
  store: Store
  health: () => Health
}

/** The parts of a limiter for one set of credentials, with its database. */
export interface DeployedParts extends LimiterParts {
  database: Database
}

export interface Question {
  matched: Matched
  /** Defaults to `take`. */
  mode?: 'take' | 'peek'
  /** The id for slots. Defaults to a random id. */
  slot?: string | undefined
  /** The longest time for which the request may wait, ms. Defaults to `wait` of its policies. */
  waitMs?: number | undefined
  /** True if the caller settles every charge. Defaults to those that depend on the response. */
  settlesAll?: boolean
}

/** A decision, and its charges that depend on the response. */
export interface Outcome {
  decision: Decision
  charges?: Charges
  /** Set if this is the stored reply of an earlier call with the same idempotency key. */
  replayed?: true
  /** The matches that decided. Absent if all of the request did. */
  matches?: Match[]
  /** The match of each limit of the decision whose quota binds. Absent if no policy has several. */
  binding?: Match[]
  /** The part that decided without the store. Absent if the store decides. */
  decidedBy?: DecidedBy
  /** The states of the limits that the store or the isolate has counted. Set if `onStoreError` has answered one. */
  counted?: LimitState[]
  /** The error of the store, if `onStoreError` has answered. */
  error?: StoreError
  /** The part in the calls to the store. Set for an observer, if the question was sent to the store. */
  use?: StoreUse
  /** Tells the client more about the decision. Set if the request has waited. */
  mark?: (response: Response) => Response
}

/** A question that the store must decide. */
export interface Pending {
  limits: PolicyLimit[]
  /** The first request has the enforced limits, if any. Each shadow limit is a request by itself. */
  requests: { mode: 'take' | 'follow' | 'peek'; limits: PolicyLimit[]; ticket?: Ticket }[]
  mode: 'take' | 'peek'
  slot: string | undefined
  /** The longest time for which the request may wait, ms. Defaults to `wait` of its policies. */
  waitMs?: number | undefined
  settles: boolean
  /** True if the caller settles every charge. */
  settlesAll?: boolean | undefined
}

export interface DecideOptions {
  /** When the deadline begins, ms since the epoch. Defaults to now. */
  startedAt?: number
  idempotency?: Idempotency
  /** Keeps the isolate alive after the request ends. Required for a decision to join a batch. */
  waitUntil?: RuntimeContext['waitUntil']
  /** The request whose signal tells that the client has gone. */
  request?: Pick<Request, 'signal'> | undefined
  /** Resolves when the client has gone. Replaces the signal. */
  closed?: Promise<unknown> | undefined
}
