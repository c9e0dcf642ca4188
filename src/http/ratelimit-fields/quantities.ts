import type { Decision, LimitState } from '../../base/decision.ts'

/** What a field tells of a limit; nothing where it has no word for it. */
export type Quantity = (limit: LimitState, decision: Decision) => number | string | undefined

/** Whole seconds, up: nobody comes too early. */
export const seconds = (milliseconds: number) => Math.ceil(milliseconds / 1000)

/** The largest sf-integer (RFC 9651, 3.3.1). */
const MAX_SF_INTEGER = 999_999_999_999_999
const LAST_OF_YEAR_9999 = 253_402_300_799

export const policy: Quantity = ({ policy }) => policy
export const limit = (state: LimitState) => Math.min(state.limit, MAX_SF_INTEGER)
export const remaining = (state: LimitState) => Math.min(state.remaining, MAX_SF_INTEGER)
/** Room for a burst can hold more than the limit: then nothing is used. */
export const used = (state: LimitState) => Math.max(0, limit(state) - remaining(state))

/** Seconds; no draft has a window below one or between two. */
export const window = ({ windowMs, unit }: LimitState) =>
  unit === undefined && windowMs % 1000 === 0
    ? Math.min(windowMs / 1000, MAX_SF_INTEGER)
    : undefined

/** A registered unit of the quota (draft-11, "RateLimit Quota Units"), as an sf-string; requests go without saying. */
export const unit = ({ unit }: LimitState) => unit && `"${unit}"`

/**
 * Seconds until `remaining` next grows; on a refusal not beyond Retry-After, as draft-11 wants ("Server Behavior"). Unknown for
 * concurrent requests: a slot is free when a request in flight ends.
 */
export const untilMore: Quantity = ({ nextAfterMs, unit }, { retryAfterMs }) =>
  unit ? undefined : seconds(retryAfterMs ? Math.min(nextAfterMs, retryAfterMs) : nextAfterMs)

/** Seconds until the whole quota is there, which is what GitHub's and the other X- fields call reset. Never before Retry-After. */
export const untilFull = ({ resetAfterMs }: LimitState, { retryAfterMs }: Decision) =>
  seconds(Math.max(resetAfterMs, retryAfterMs ?? 0))

/**
 * The reset of draft-6 and draft-7, in seconds: until the whole quota is there ("until the quota … resets"); but beside a
 * Retry-After it "SHOULD reference the same point in time" (both drafts, "Server Behavior"), so on a refusal it is that.
 */
export const untilReset = (state: LimitState, decision: Decision) =>
  decision.retryAfterMs ? seconds(decision.retryAfterMs) : untilFull(state, decision)

/** The instant of {@link untilFull} in seconds since the epoch, by the store's clock, which decided. */
export const fullAt = (
  { resetAfterMs }: LimitState,
  { retryAfterMs, decidedAt = Date.now() }: Decision,
) => Math.min(seconds(decidedAt + Math.max(resetAfterMs, retryAfterMs ?? 0)), LAST_OF_YEAR_9999)

/** The same as ISO 8601, in UTC. */
export const fullAtIso = (state: LimitState, decision: Decision) =>
  new Date(fullAt(state, decision) * 1000).toISOString().replace('.000', '')
