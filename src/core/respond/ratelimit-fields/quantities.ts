import type { Decision, LimitState } from '../../base/decision.ts'

/** The value of a field or parameter for a limit; `undefined` if it cannot express the value. */
export type Quantity = (limit: LimitState, decision: Decision) => number | string | undefined

/** Rounds up to whole seconds, so that no client retries too early. */
export const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000)

/** The largest sf-integer (RFC 9651, 3.3.1). */
const MAX_SF_INTEGER = 999_999_999_999_999
const LAST_OF_YEAR_9999 = 253_402_300_799

export const policy: Quantity = ({ policy }) => policy
export const limit = (state: LimitState) => Math.min(state.limit, MAX_SF_INTEGER)
export const remaining = (state: LimitState) => Math.min(state.remaining, MAX_SF_INTEGER)
/** Units used, at least 0: with a burst, more than `limit` can remain. Units that are kept free for other requests are not used. */
export const used = (state: LimitState) =>
  Math.max(0, limit(state) - remaining(state) - (state.reserved ?? 0))

/** The unit of quotas without a time window. */
export const SLOTS = 'concurrent-requests'

/** Window in seconds; `undefined` if it is not whole seconds, which no draft can express. */
export const window = ({ windowMs, unit }: LimitState) =>
  unit !== SLOTS && windowMs % 1000 === 0 ? Math.min(windowMs / 1000, MAX_SF_INTEGER) : undefined

/**
 * Seconds until `remaining` next grows. On a refusal at most Retry-After, as draft-11 requires ("Server Behavior"). `undefined` for
 * concurrent requests, because a slot is released when a request in flight ends.
 */
export const untilMore: Quantity = ({ nextAfterMs, unit }, { retryAfterMs }) =>
  unit === SLOTS
    ? undefined
    : seconds(retryAfterMs ? Math.min(nextAfterMs, retryAfterMs) : nextAfterMs)

/** Seconds until the whole quota is available: the reset of GitHub's and other X- fields. At least Retry-After. */
export const untilFull = ({ resetAfterMs }: LimitState, { retryAfterMs }: Decision) =>
  seconds(Math.max(resetAfterMs, retryAfterMs ?? 0))

/**
 * The reset of draft-6 and draft-7: seconds until the whole quota is available ("until the quota … resets"). On a refusal it equals
 * Retry-After, because it "SHOULD reference the same point in time" (both drafts, "Server Behavior").
 */
export const untilReset = (state: LimitState, decision: Decision) =>
  decision.retryAfterMs ? seconds(decision.retryAfterMs) : untilFull(state, decision)

/** The time of {@link untilFull} in seconds since the epoch, by the clock of the store. */
export const fullAt = (
  { resetAfterMs }: LimitState,
  { retryAfterMs, decidedAt = Date.now() }: Decision,
) => Math.min(seconds(decidedAt + Math.max(resetAfterMs, retryAfterMs ?? 0)), LAST_OF_YEAR_9999)

/** The time of {@link untilFull} as ISO 8601, in UTC. */
export const fullAtIso = (state: LimitState, decision: Decision) =>
  new Date(fullAt(state, decision) * 1000).toISOString().replace('.000', '')
