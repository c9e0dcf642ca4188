import type { Fallback } from '../../core/base/decision.ts'
import type { DecidedBy } from '../../core/decide/observer.ts'

export type { DecidedBy } from '../../core/decide/observer.ts'

/**
 * `would-refuse`: the request passed, but a policy in shadow mode would have refused it. `allowed` includes requests without a policy.
 * `verified`: a request of `sluice verify`, which is no client's, whatever became of it.
 */
export const outcomes = [
  'allowed',
  'limited',
  'banned',
  'denied',
  'shielded',
  'would-refuse',
  'store-error',
  'verified',
] as const
export type DecisionOutcome = (typeof outcomes)[number]

export const deciders = [
  'store',
  'cache',
  'lease',
  'shield',
  'local',
  'list',
] as const satisfies DecidedBy[]

/** One decision. Each request has exactly one event. */
export interface DecisionEvent {
  /** The version of this format. */
  v: 1
  /** ms since the epoch, by the clock of the isolate */
  time: number
  outcome: DecisionOutcome
  decidedBy: DecidedBy
  allowed: boolean
  /**
   * The name of the policy that binds: on a refusal the one that refuses longest, otherwise the one with the smallest share remaining.
   * With `would-refuse` the shadow policy; with `denied` the entry of `deny`. With `shielded` the first enforced policy, and with
   * `store-error` the first one whose fallback decided. Absent if no policy applies.
   */
  policy?: string
  plan?: string
  /** The cost of the request for this policy, in units. 0 without a policy. */
  units: number
  /** The remaining share of the quota after the decision, 0 to 1. Absent if it is unknown. */
  remainingShare?: number
  /** True if at least 80 % of the quota is used. */
  near: boolean
  /** Only with the outcome `store-error`. */
  fallback?: Fallback
  /** How long the request waited for the store, ms. Absent without a call. */
  storeMs?: number
  /** HTTP calls to the store; a share of a call if several decisions were in one batch. */
  calls: number
  /** Commands that Upstash bills, a share of the batch. */
  billedCommands: number
  /** IATA code of the Cloudflare data center. */
  colo?: string
  /** ISO 3166-1 alpha-2 */
  country?: string
  /** The id of the trace, with `to: 'trace'` and a request that is sampled. */
  traceId?: string
  /** The label of the client, by `observe.subjects`. Absent with `none`, and without a policy. */
  subject?: string
}
