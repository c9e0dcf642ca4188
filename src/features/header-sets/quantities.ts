/** The values of the older sets. */
import type { Decision, LimitState } from '../../core/base/decision.ts'
import {
  limit,
  type Quantity,
  remaining,
  seconds,
} from '../../core/respond/ratelimit-fields/quantities.ts'

const LAST_OF_YEAR_9999 = 253_402_300_799

export const policy: Quantity = ({ policy }) => policy
/** Units used, at least 0: with a burst, more than `limit` can remain. Units that are kept free for other requests are not used. */
export const used = (state: LimitState) =>
  Math.max(0, limit(state) - remaining(state) - (state.reserved ?? 0))

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
