/** The types of a decision. This file imports nothing, so every room can import it. */

/**
 * Why a request is allowed or refused.
 * - `within-limit`: every enforced policy has room, and each one is charged.
 * - `limited`: at least one enforced policy has no room. Nothing is charged.
 * - `no-policy`: no policy applies to the request, or an entry of `allow` lets it pass. There is no call to the store.
 * - `denied`: an entry of `deny` matches the request, or a policy with `onMissingKey: 'refuse'` finds no value for its key. There is no
 *   call to the store.
 * - `banned`: a ban (`penalty` of a policy) is in effect. Nothing is charged.
 * - `shielded`: the shield, which counts inexactly, refuses the request as part of a flood. There is no call to the store, and nothing
 *   is charged.
 * - `store-error`: the store did not answer, so `onStoreError` of the policies decides. With shards: one of them did not answer, and
 *   the limits in the others had room.
 */
export type Reason =
  | 'within-limit'
  | 'limited'
  | 'no-policy'
  | 'denied'
  | 'banned'
  | 'shielded'
  | 'store-error'

/** `enforce` refuses requests over the limit. `shadow` counts and reports, and never refuses. */
export type PolicyMode = 'enforce' | 'shadow'

/** The state of one quota after a decision. Durations are milliseconds from the decision on. */
export interface QuotaState {
  /** True if this quota has room for the request, regardless of other quotas. */
  allowed: boolean
  /** The largest cost that would be admitted at the time of the decision, in units. With `reserve` the largest cost of a request with the same share. */
  remaining: number
  /** The free units that this request must leave free, because of `reserve`. Absent if it may use the whole quota. */
  reserved?: number
  /**
   * The wait until the same cost fits: 0 if allowed, `null` if it never fits (the cost is above the capacity). For concurrent requests
   * this and the next two fields are the longest possible waits.
   */
  retryAfterMs: number | null
  /** Time until the whole quota is available; 0 if it is. */
  resetAfterMs: number
  /** Time until `remaining` next increases; 0 if the whole quota is available. */
  nextAfterMs: number
  /** Remaining time of a ban, above 0. Absent without a ban. */
  bannedForMs?: number
  /** Size of the quota, if an operator has set it for this key. */
  limit?: number
  /** How long this size stays in force, above 0. Absent if no operator has set it. */
  overriddenForMs?: number
  /** Time of the decision by the clock of this limit's own object, hash slot or lease, ms since the epoch. Present only if several of them decided, or if the request has waited: then it is the time of its place. Absent in a refusal. */
  decidedAt?: number
}

/** The state of one policy after a decision. */
export interface LimitState extends QuotaState {
  /** Name of the policy. */
  policy: string
  mode: PolicyMode
  /** Size of the quota, in units. */
  limit: number
  /** Unit of the quota. Absent for requests in a time window. `content-bytes` with `cost.response: 'bytes'`. */
  unit?: 'concurrent-requests' | 'content-bytes'
  /** The time window of the quota, or the lifetime of a slot with `concurrency`. */
  windowMs: number
  /** The cost of this request, in units. */
  cost: number
}

/** How a request is answered without the store: see `onStoreError` of a policy. */
export type Fallback = 'allow' | 'deny' | 'local'

/**
 * Why a part of a key has no value although the request contains a credential.
 * - `unreadable`: it has several values or a malformed one, so it is unknown which value the origin uses.
 * - `unverified`: a token that fails verification, or an API key that is not in the list of known keys.
 */
export type KeyFault = 'unreadable' | 'unverified'

/** The rule that refused a request without a call to the store. */
export interface Denied extends Lacking {
  /** Name of the entry of `deny`, or of the policy with `onMissingKey: 'refuse'`. */
  by: string
}

/** The part of a policy's key that has no value, in the field named after the reason. At most one field is present. */
export interface Lacking {
  /** The part is absent from the request. */
  missing?: string
  unreadable?: string
  unverified?: string
}

/** The decision for one request. A refusal is a value, never an exception. */
export interface Decision {
  allowed: boolean
  reason: Reason
  /** The fallback that answered. Present only with the reason `store-error`. */
  fallback?: Fallback
  /** The rule that refused the request. Present only with the reason `denied`. */
  denied?: Denied
  /**
   * Milliseconds until the same request passes, if no other request is charged: 0 if allowed, `null` if it never passes or the wait is
   * unknown. The longest possible wait with the reason `shielded` and for concurrent requests, whose slots are released as soon as a
   * request in flight ends.
   */
  retryAfterMs: number | null
  /**
   * The state of each policy that applies to the request, in the order of the configuration, except those without an answer from a
   * database. If a policy charges several quotas (see `path:<name>` of a key), the strictest. Empty for `no-policy` and `shielded`.
   */
  limits: LimitState[]
  /** Time of the decision by the store's clock, ms since the epoch; with several objects or hash slots the earliest. Absent without a call to a store, or if one did not answer. */
  decidedAt?: number
  /** Id of the slots that the request holds of policies with `concurrency`. Absent without such a policy. */
  slot?: string
}

/** The state of limits at one time, without a charge. */
export interface LimitStatus {
  /** Time of the answer by the store's clock, ms since the epoch. Absent if there are no limits. */
  decidedAt?: number
  limits: LimitState[]
}

/** A set of header fields that report a decision. */
export interface FieldSet {
  names: readonly string[]
  /** Returns the fields for a decision, and the remaining units that they report; `undefined` if the decision has no limit to report. */
  valuesFor(
    decision: Decision,
  ): { fields: [name: string, value: string][]; remaining: number } | undefined
  /** The smallest number that a client may read as remaining in the fields of a response; infinity if there is none. Defaults to that of the drafts. */
  remainingIn?: ((headers: Headers) => number) | undefined
  /** Fields outside of the set that describe the same quota, and would contradict these. */
  companions: readonly string[]
}
