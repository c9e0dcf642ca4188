/** The event of a decision, and the policy and the client that it names. */
import type { LimitState } from '../../core/base/decision.ts'
import type { DecidedBy, DecisionFact } from '../../core/decide/observer.ts'
import type { Match } from '../../core/program/match.ts'
import type { DecisionEvent, DecisionOutcome } from './event.ts'
import type { ObserveSettings } from './options.ts'

/** A client is near its limit if this share of the quota remains, or less. */
const NEAR = 0.2

/** The policy of an event, or the entry of `deny`. Without a name no policy applies. */
interface Binding {
  name?: string
  match?: Match | undefined
  remainingShare?: number
}

/** What each report of a decision names. The event of `onDecision` has more fields. */
export type DecisionSummary = Omit<DecisionEvent, 'calls' | 'billedCommands'>

/** @param time ms since the epoch */
export function summaryOf(fact: DecisionFact, time: number) {
  const { allowed, fallback } = fact.decision
  const { name, match, remainingShare } = bindingOf(fact)
  const outcome = outcomeOf(fact)
  const plan = match?.terms.planName
  const summary: DecisionSummary = {
    ...{ v: 1, time, outcome, decidedBy: deciderOf(fact), allowed, units: match?.cost ?? 0 },
    ...(name !== undefined && { policy: name }),
    ...(plan !== undefined && { plan }),
    ...(remainingShare !== undefined && { remainingShare }),
    near: (remainingShare ?? 1) <= NEAR && outcome !== 'verified',
    ...(fallback && { fallback }),
  }
  return { summary, match }
}

function outcomeOf({ decision: { reason, limits }, verified }: DecisionFact): DecisionOutcome {
  if (verified) return 'verified'
  if (reason === 'within-limit') return limits.some(refuses) ? 'would-refuse' : 'allowed'
  return reason === 'no-policy' ? 'allowed' : reason
}

/** A decision that was left to the store, but needed no call, is from leased units. */
function deciderOf({ decision: { reason }, decidedBy, use }: DecisionFact): DecidedBy {
  if (decidedBy) return decidedBy
  if (reason === 'store-error') return 'local'
  return use && use.calls > 0 ? 'store' : 'lease'
}

/** Returns the policy that binds, by the rules of `DecisionEvent.policy`. */
function bindingOf(fact: DecisionFact): Binding {
  const { decision, matches } = fact
  const { denied, reason, allowed, fallback, limits } = decision
  if (denied) return { name: denied.by }
  if (reason === 'store-error' || limits.length === 0) {
    const decides = ({ terms }: Match) =>
      terms.mode === 'enforce' && (!fallback || terms.onStoreError === fallback)
    const match = matches.find(decides) ?? matches[0]
    return match ? { name: match.terms.name, match } : {}
  }
  const restOf = (limit: LimitState) => shareOf(limit, matchOf(limit, fact))
  const enforced = limits.filter(({ mode }) => mode === 'enforce')
  const refusing = (allowed ? limits : enforced).filter(refuses)
  const limit =
    refusing.length > 0
      ? greatest(refusing, ({ retryAfterMs }) => retryAfterMs ?? Number.POSITIVE_INFINITY)
      : greatest(enforced.length > 0 ? enforced : limits, (one) => -restOf(one))
  return { name: limit.policy, match: matchOf(limit, fact), remainingShare: restOf(limit) }
}

/** The remaining share of a quota, 0 to 1. The capacity of a bucket is its burst. Units that are kept free for other requests remain. */
export const shareOf = (state: LimitState, match: Match | undefined) =>
  Math.min(1, freeUnits(state) / (match?.terms.burst ?? state.limit))

export const freeUnits = ({ remaining, reserved = 0 }: LimitState) => remaining + reserved

/** The match of a state: of several keys of one policy, the key in its place. */
export function matchOf(limit: LimitState, { decision, matches }: DecisionFact): Match | undefined {
  const own = matches.filter(({ terms }) => terms.name === limit.policy)
  const states = decision.limits.filter(({ policy }) => policy === limit.policy)
  return own[states.indexOf(limit)]
}

const refuses = ({ allowed }: LimitState) => !allowed

const greatest = <T>(items: T[], measure: (item: T) => number): T =>
  items.reduce((best, one) => (measure(one) > measure(best) ? one : best))

/** The label of a client in events and counts, by `observe.subjects`. Known at once if the isolate has hashed the key recently. */
export function labelOf(
  subjects: ObserveSettings['subjects'],
  key: Match['partitionKey'],
  hash: DecisionFact['hash'],
) {
  if (subjects === 'none') return undefined
  return (subjects === 'plain' ? readable(key) : undefined) ?? hash(key)
}

/** A text such as `ip=203.0.113.7`. `undefined` if a value is missing, long or has unusual characters. */
const readable = (key: Match['partitionKey']) =>
  key.every(([, value]) => value !== undefined && /^[\w.:/@-]{1,64}$/.test(value))
    ? key.map(([label, value]) => `${label}=${value}`).join(',')
    : undefined
