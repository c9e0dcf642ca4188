import type { Decision, LimitState } from '../../base/decision.ts'

/** The value of a field or parameter for a limit; `undefined` if it cannot express the value. */
export type Quantity = (limit: LimitState, decision: Decision) => number | string | undefined

/** Rounds up to whole seconds, so that no client retries too early. */
export const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000)

/** The largest sf-integer (RFC 9651, 3.3.1). */
const MAX_SF_INTEGER = 999_999_999_999_999

export const limit = (state: LimitState) => Math.min(state.limit, MAX_SF_INTEGER)
export const remaining = (state: LimitState) => Math.min(state.remaining, MAX_SF_INTEGER)
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
