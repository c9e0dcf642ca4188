/** What the step `decide` takes and gives: types only. */
import type { Decision } from '../base/decision.ts'
import type { StoreError } from '../base/errors.ts'
import type { Matched } from '../match/match.ts'
import type { NameSubject, Part } from '../match/subject.ts'
import type { RuntimeContext } from '../request/view.ts'
import type { LocalStore } from '../store/local/local.ts'
import type { Idempotency, Store } from '../store/store.ts'
import type { DenialCache } from './denial-cache.ts'
import type { PolicyLimit } from './limit.ts'
import type { Charge } from './settle.ts'

export type { Idempotency } from '../store/store.ts'

/** What a limiter reaches the outside through. */
export interface LimiterParts {
  store: Store
  /** Answers for policies with `onStoreError: 'local'` when the store does not. */
  local: LocalStore
  nameSubject: NameSubject
  /** Absent where every decision asks the store. */
  denialCache?: DenialCache | undefined
  /** The refusal of the shield, if it has one; absent without a shield. */
  shield?: ((key: Part[]) => Promise<Decision | undefined>) | undefined
  /** Receives every error of the store. */
  onStoreError: (error: StoreError) => void
}

/** What is to be decided. */
export interface Question {
  matched: Matched
  /** Defaults to `take`. */
  mode?: 'take' | 'peek'
  /** The id under which slots are held; unique by default. */
  slot?: string
}

/** A decision, and those of its charges that wait for the response. */
export interface Outcome {
  decision: Decision
  charges?: Charge[]
  /** Whether it is the reply to an earlier call with the same idempotency key. */
  replayed?: true
}

/** A question that the store has to answer. */
export interface Pending {
  limits: PolicyLimit[]
  /** The enforced limits first, then each limit of a shadow policy by itself. */
  requests: { mode: 'take' | 'follow' | 'peek'; limits: PolicyLimit[] }[]
  mode: 'take' | 'peek'
  slot: string | undefined
}

export interface DecideOptions {
  /** The part of the deadline that has passed, ms. Defaults to 0. */
  spentMs?: number
  idempotency?: Idempotency
  /** Keeps the isolate at work. A decision may then join a batch. */
  waitUntil?: RuntimeContext['waitUntil']
}
