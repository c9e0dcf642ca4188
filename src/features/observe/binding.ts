/** Finds the policy that binds a request: the one that an event names. */
import type { LimitState } from '../../core/base/decision.ts'
import type { DecisionFact } from '../../core/decide/observer.ts'
import type { Match } from '../../core/program/match.ts'
import type { DecisionOutcome } from './event.ts'

/** The policy of an event. */
export interface Binding {
  /** The name of the policy, or of the entry of `deny`. Absent if no policy applies. */
  name?: string
  /** Absent if a list decided. */
  match?: Match
  /** The remaining share of the quota, 0 to 1. Absent if it is unknown. */
  remainingShare?: number
}

type Verdict = Pick<DecisionFact, 'decision' | 'matches'>

export function outcomeOf({
  decision: { reason, limits },
  verified,
}: Pick<DecisionFact, 'decision' | 'verified'>): DecisionOutcome {
  if (verified) return 'verified'
  if (reason === 'within-limit') return limits.some(refuses) ? 'would-refuse' : 'allowed'
  return reason === 'no-policy' ? 'allowed' : reason
}

/** Returns the policy that binds, by the rules of `DecisionEvent.policy`. */
export function bindingOf({ decision, matches }: Verdict): Binding {
  const { denied, reason, allowed, fallback, limits } = decision
  if (denied) return { name: denied.by }
  if (reason === 'store-error' || limits.length === 0) {
    const decides = ({ policy }: Match) =>
      policy.mode === 'enforce' && (!fallback || policy.onStoreError === fallback)
    const match = matches.find(decides) ?? matches[0]
    return match ? { name: match.policy.name, match } : {}
  }
  const restOf = (limit: LimitState) => shareOf(limit, matchOf(limit, matches))
  const enforced = limits.filter(isEnforced)
  const refusing = (allowed ? limits : enforced).filter(refuses)
  const limit =
    greatest(refusing, waitOf) ??
    greatest(enforced.length > 0 ? enforced : limits, (one) => -restOf(one))!
  const match = matchOf(limit, matches)
  return { name: limit.policy, ...(match && { match }), remainingShare: restOf(limit) }
}

/** The remaining share of a quota, 0 to 1. The capacity of a bucket is its burst. Units that are kept free for other requests remain. */
export const shareOf = (state: LimitState, match: Match | undefined) =>
  Math.min(1, freeUnits(state) / (match?.policy.burst ?? state.limit))

export const freeUnits = ({ remaining, reserved = 0 }: LimitState) => remaining + reserved

export const matchOf = ({ policy }: LimitState, matches: Match[]) =>
  matches.find((one) => one.policy.name === policy)

const refuses = ({ allowed }: LimitState) => !allowed
const isEnforced = ({ mode }: LimitState) => mode === 'enforce'
const waitOf = ({ retryAfterMs }: LimitState) => retryAfterMs ?? Number.POSITIVE_INFINITY

function greatest<T>(items: T[], measure: (item: T) => number): T | undefined {
  let best: T | undefined
  let most = Number.NEGATIVE_INFINITY
  for (const item of items) {
    const value = measure(item)
    if (best !== undefined && value <= most) continue
    best = item
    most = value
  }
  return best
}
