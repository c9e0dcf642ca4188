/** Makes limits of matches, and the public limit states of the store's answers. */
import type { LimitState, QuotaState } from '../base/decision.ts'
import type { Match } from '../match/match.ts'
import type { NameSubject } from '../match/subject.ts'
import type { Limit } from '../store/store.ts'

/** A limit, with the match that it comes from. */
export type PolicyLimit = Match & Limit

/** @param slot the id for the slots of `concurrency` policies */
export async function limitOf(
  match: Match,
  slot: string | undefined,
  nameSubject: NameSubject,
): Promise<PolicyLimit> {
  const { policy, partitionKey } = match
  const { algorithm, penalty } = policy
  return {
    ...match,
    terms: policy,
    subject: await nameSubject(partitionKey),
    ...(penalty && { penalty }),
    ...(algorithm === 'concurrency' && slot !== undefined && { slot }),
  }
}

/** The state of each policy of these matches. A policy with several quotas gets one combined state, the strictest. */
export function limitStates(matches: Match[], states: QuotaState[]): LimitState[] {
  const limits: LimitState[] = []
  for (const [index, match] of matches.entries()) {
    const state = limitState(match, states[index]!)
    const before = limits.at(-1)
    if (before?.policy === state.policy) limits[limits.length - 1] = strictest(before, state)
    else limits.push(state)
  }
  return limits
}

/** Combines two states of a policy: the smaller remaining quota, and the longer waits. */
function strictest(one: LimitState, other: LimitState): LimitState {
  const fuller = one.remaining > other.remaining ? one : other
  const emptier = fuller === one ? other : one
  const isTie = one.remaining === other.remaining
  const bannedForMs = Math.max(one.bannedForMs ?? 0, other.bannedForMs ?? 0)
  const earliest = Math.min(
    one.decidedAt ?? Number.POSITIVE_INFINITY,
    other.decidedAt ?? Number.POSITIVE_INFINITY,
  )
  return {
    ...emptier,
    allowed: one.allowed && other.allowed,
    retryAfterMs: longestWait([one, other]),
    resetAfterMs: Math.max(one.resetAfterMs, other.resetAfterMs),
    ...(isTie && { nextAfterMs: Math.max(one.nextAfterMs, other.nextAfterMs) }),
    ...(bannedForMs > 0 && { bannedForMs }),
    ...(earliest < Number.POSITIVE_INFINITY && { decidedAt: earliest }),
  }
}

/** The public state of a limit. */
export function limitState({ policy, cost, period }: Match, state: QuotaState): LimitState {
  const { name, mode, limit, algorithm } = policy
  const windowMs = period ? period[1] - period[0] : policy.windowMs
  const unit = algorithm === 'concurrency' && ({ unit: 'concurrent-requests' } as const)
  return { policy: name, mode, limit, ...unit, windowMs, cost, ...state, ...bannedState(state) }
}

/** During a ban nothing remains, and no wait ends before the ban. */
function bannedState({ bannedForMs, resetAfterMs, nextAfterMs }: QuotaState) {
  return (
    bannedForMs && {
      remaining: 0,
      resetAfterMs: Math.max(resetAfterMs, bannedForMs),
      nextAfterMs: Math.max(nextAfterMs, bannedForMs),
    }
  )
}

/** The longest wait; `null` (never) if any state has `null`. 0 if all admit the request. */
export function longestWait(states: Pick<QuotaState, 'retryAfterMs'>[]): number | null {
  const waits = states.map(({ retryAfterMs }) => retryAfterMs)
  return waits.includes(null) ? null : Math.max(0, ...(waits as number[]))
}
