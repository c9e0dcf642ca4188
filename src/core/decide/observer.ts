/** What an observer hears of decisions. Types only. */
import type { Decision } from '../base/decision.ts'
import type { RuntimeContext } from '../base/runtime.ts'
import type { CallObserver } from '../connection/observed-call.ts'
import type { StoreCall } from '../connection/store.ts'
import type { Match } from './matched.ts'
import type { NameSubject } from './subject.ts'

/**
 * The part that made a decision: the store, the denial cache, leased units, the shield, the isolate itself (`onStoreError`), or the
 * configuration alone (`deny`, `allow`, `onMissingKey`, or no policy that applies).
 */
export type DecidedBy = 'store' | 'cache' | 'lease' | 'shield' | 'local' | 'list'

/** The part of one decision in the calls to the store. */
export interface StoreUse {
  /** How long the decision waited for the store, ms. */
  ms: number
  /** HTTP calls; a share of a call if several decisions were in one batch. */
  calls: number
  billedCommands: number
}

export interface Meter {
  /** Receives each call in which the decision has a part. */
  onCall: (call: StoreCall) => void
  /** Ends the wait for the store. */
  stop: () => StoreUse
}

/** One decision, as the limiter reports it. */
export interface DecisionFact extends RuntimeContext {
  decision: Decision
  /** Absent if the decision was left to the store, whose layers may hold leased units. */
  decidedBy?: DecidedBy | undefined
  /** Empty if no policy applies. */
  matches: Match[]
  /** Absent if the decision did not need the store. */
  use: StoreUse | undefined
  /** Where the request comes from. Read only when it is needed. */
  from: { colo?: string | undefined; country?: string | undefined }
  /** True for a request of `sluice verify`, which is no client's. */
  verified?: boolean
  /** Hashes a partition key. The result is the subject in the store. */
  hash: NameSubject
}

/** Receives the facts of one limiter. Its methods never throw, and delay no request. */
export interface Observer extends CallObserver {
  decided: (fact: DecisionFact) => void
  /**
   * Called before a decision is sent to the store.
   * @param lists the number of decisions that share the meter: each has an equal part in all of its calls
   */
  measure: (lists?: number) => Meter
}
