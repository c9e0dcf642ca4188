/** The sets before draft-11, as data. */
import type { Decision, FieldSet, LimitState } from '../../core/base/decision.ts'
import {
  fieldSet,
  limit,
  nearest,
  type Quantity,
  remaining,
  seconds,
  window,
} from '../../core/respond/ratelimit-fields/sets.ts'
import { leastIn } from '../../core/respond/ratelimit-fields/structured.ts'

const LAST_OF_YEAR_9999 = 253_402_300_799

const policy: Quantity = ({ policy }) => policy
/** Units used, at least 0: with a burst, more than `limit` can remain. Units that are kept free for other requests are not used. */
const used = (state: LimitState) =>
  Math.max(0, limit(state) - remaining(state) - (state.reserved ?? 0))

/** Seconds until the whole quota is available: the reset of GitHub's and other X- fields. At least Retry-After. */
const untilFull = ({ resetAfterMs }: LimitState, { retryAfterMs }: Decision) =>
  seconds(Math.max(resetAfterMs, retryAfterMs ?? 0))

/**
 * The reset of draft-6 and draft-7: seconds until the whole quota is available ("until the quota … resets"). On a refusal it equals
 * Retry-After, because it "SHOULD reference the same point in time" (both drafts, "Server Behavior").
 */
const untilReset = (state: LimitState, decision: Decision) =>
  decision.retryAfterMs ? seconds(decision.retryAfterMs) : untilFull(state, decision)

/** The time of {@link untilFull} in seconds since the epoch, by the clock of the store. */
const fullAt = ({ resetAfterMs }: LimitState, { retryAfterMs, decidedAt = Date.now() }: Decision) =>
  Math.min(seconds(decidedAt + Math.max(resetAfterMs, retryAfterMs ?? 0)), LAST_OF_YEAR_9999)

const fullAtIso = (state: LimitState, decision: Decision) =>
  new Date(fullAt(state, decision) * 1000).toISOString().replace('.000', '')

/** Selects "the lower remaining" (draft-6 and draft-7, "Server Behavior"): fields that name no policy must hold for all policies. */
const leastLeft = nearest(
  ({ remaining }) => remaining,
  ({ resetAfterMs }) => resetAfterMs,
)

/**
 * Returns the limits that draft-6 and draft-7 can list. They require `w`, and "two quota policies MUST NOT be associated with the same
 * quota units". Of limits with equal quota units, the one with the longest window is listed, because it is the strictest.
 */
function distinctQuotas({ limits }: Decision): LimitState[] {
  const candidates = limits.filter(
    (state) => state.mode === 'enforce' && window(state) !== undefined,
  )
  const byWindow = candidates.toSorted((a, b) => a.windowMs - b.windowMs)
  const strictest = new Map(byWindow.map((state) => [limit(state), state]))
  return candidates.filter((state) => strictest.get(limit(state)) === state)
}

const policies: Quantity = (_, decision) =>
  distinctQuotas(decision)
    .map((state) => `${limit(state)};w=${window(state)}`)
    .join(', ') || undefined

const state7: Quantity = (state, decision) =>
  `limit=${limit(state)}, remaining=${remaining(state)}, reset=${untilReset(state, decision)}`

/**
 * The set of each name. `draft-n` is draft-ietf-httpapi-ratelimit-headers-n, which uses Structured Fields (RFC 8941).
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 * https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
 */
export const sets = {
  'draft-7': fieldSet(leastLeft, {
    'RateLimit-Policy': policies,
    RateLimit: state7,
  }),
  'draft-6': fieldSet(leastLeft, {
    'RateLimit-Policy': policies,
    'RateLimit-Limit': limit,
    'RateLimit-Remaining': remaining,
    'RateLimit-Reset': untilReset,
  }),
  github: fieldSet(
    leastLeft,
    {
      'x-ratelimit-limit': limit,
      'x-ratelimit-remaining': remaining,
      'x-ratelimit-used': used,
      'x-ratelimit-reset': fullAt,
      'x-ratelimit-resource': policy,
    },
    (headers) => leastIn(headers, 'x-ratelimit-remaining'),
  ),
}

const resets = { epoch: fullAt, delta: untilFull, iso: fullAtIso }

export function headerSet(
  written: keyof typeof sets | { prefix: string; reset: keyof typeof resets },
): FieldSet {
  if (typeof written === 'string') return sets[written]
  const { prefix, reset } = written
  const remainingName = `${prefix}Remaining`
  return fieldSet(
    leastLeft,
    { [`${prefix}Limit`]: limit, [remainingName]: remaining, [`${prefix}Reset`]: resets[reset] },
    (headers) => leastIn(headers, remainingName),
    /rate-?limit-$/i.test(prefix) ? [`${prefix}Used`, `${prefix}Resource`] : [],
  )
}
