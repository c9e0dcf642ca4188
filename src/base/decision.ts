/** What a decision says: types only, imported by anyone, importing nobody. */

/**
 * Why a request may pass or not.
 * - `within-limit`: every enforced policy had room, and all of them were charged.
 * - `limited`: at least one enforced policy had no room; nothing was charged.
 * - `no-policy`: no policy met the request, or a list let it pass; the store was not asked.
 * - `denied`: a deny list names it, or it has no value for the key of a policy with `onMissingKey: 'refuse'`; the store was not asked.
 * - `banned`: refusals have led to a ban (`penalty` of a policy) that is not over; nothing was charged.
 * - `shielded`: the shield took it for part of a flood, inexactly; the store was not asked, nothing was charged.
 * - `store-error`: the store could not answer; the policies' `onStoreError` decided. Of several databases: one of them could not, and
 *   what the others decide had room.
 */
export type Reason =
  | 'within-limit'
  | 'limited'
  | 'no-policy'
  | 'denied'
  | 'banned'
  | 'shielded'
  | 'store-error'

/** `enforce` refuses requests past the limit; `shadow` only tells what it would have done. */
export type PolicyMode = 'enforce' | 'shadow'

/** How one quota stands after a decision. Durations are milliseconds from the decision on. */
export interface QuotaState {
  /** Whether this quota alone had room for the request. */
  allowed: boolean
  /** The largest cost that would be admitted right now. */
  remaining: number
  /**
   * 0 when allowed; else the wait after which the same cost fits; `null` when it never can (cost above capacity). Of concurrent
   * requests the longest possible wait, as are the next two.
   */
  retryAfterMs: number | null
  /** Until the whole quota is there again; 0 when it is. */
  resetAfterMs: number
  /** Until `remaining` next grows; 0 when the quota is full. */
  nextAfterMs: number
  /** The rest of a ban, above 0; absent without one. */
  bannedForMs?: number
  /** Where several shards decided, or a lease beside one, the time for this limit by the clock of its own, ms since the epoch. Absent in a refusal. */
  decidedAt?: number
}

/** How one policy stands after a decision. */
export interface LimitState extends QuotaState {
  /** Name of the policy. */
  policy: string
  mode: PolicyMode
  /** Size of the quota, in units. */
  limit: number
  /** What a quota is of. Absent for requests in a window of time. */
  unit?: 'concurrent-requests'
  /** The time window of the quota; of concurrency the life of a slot. */
  windowMs: number
  /** The price of this request, in units. */
  cost: number
}

/** How a request was answered that the store could not decide: see `onStoreError` of a policy. */
export type Fallback = 'allow' | 'deny' | 'local'

/**
 * Why a part of a key has no value although the request has something there.
 * - `unreadable`: it is not one value. Which value the origin takes is unknown.
 * - `unverified`: a token that does not verify, or an API key that is not known.
 */
export type KeyFault = 'unreadable' | 'unverified'

/** Who refused a request before any limit was asked. */
export interface Denied extends Lacking {
  /** The entry of the list `deny`, or the policy with `onMissingKey: 'refuse'`. */
  by: string
}

/** The part of a policy's key that has no value, under the reason. At most one is present. */
export interface Lacking {
  /** The request does not have it. */
  missing?: string
  unreadable?: string
  unverified?: string
}

/** The answer for one request. A refusal is a value, never an exception. */
export interface Decision {
  allowed: boolean
  reason: Reason
  /** With the reason `store-error` only: the fallback that answered. */
  fallback?: Fallback
  /** With the reason `denied` only. */
  denied?: Denied
  /**
   * 0 when allowed; else the wait after which the same request passes if nothing else happens; `null`: never, or not known. With the
   * reason `shielded`, and where a limit of concurrent requests refuses, it is the longest possible wait: a slot is free as soon as a
   * request in flight ends.
   */
  retryAfterMs: number | null
  /**
   * Every policy that met the request, in the order of the configuration, but for those that no database answered for: no number is
   * invented. Of several quotas of one policy (see `path:<name>` of a key) the strictest. Empty on `no-policy` and `shielded`.
   */
  limits: LimitState[]
  /** The store's time of the decision, ms since the epoch; of several shards the earliest. Absent where none was asked, or one gave no answer. */
  decidedAt?: number
  /** The slots that policies with `concurrency` hold for the request, by their id. Absent without such a policy. */
  slot?: string
}

/** How limits stand, by the store's time. */
export interface LimitStatus {
  /** ms since the epoch; absent where no limit was asked for. */
  decidedAt?: number
  limits: LimitState[]
}
