import type { LimitState, QuotaState } from '../base/decision.ts'
import type { Soon } from '../base/when-known.ts'
import type { Limit } from '../connection/store.ts'
import type { Match } from './matched.ts'
import type { NameSubject } from './subject.ts'

export type PolicyLimit = Match & Limit

/** Makes the digests of the values of a match that has `distinct`. */
export type NameValues = (match: Match, nameSubject: NameSubject) => Promise<string[]>

export interface Naming {
  nameSubject: NameSubject
  /** Undefined if no policy counts distinct values. */
  nameValues?: NameValues | undefined
}

/** Makes one limit after the other: most policies have the same key, whose subject is then known. The slot is that of `concurrency`. */
export function limitsOf(
  matches: Match[],
  slot: string | undefined,
  naming: Naming,
  limits: PolicyLimit[] = [],
): Soon<PolicyLimit[]> {
  const { nameSubject, nameValues } = naming
  while (limits.length < matches.length) {
    const match = matches[limits.length]!
    const subject = match.subject ?? nameSubject(match.partitionKey)
    const values = match.distinct && nameValues?.(match, nameSubject)
    if (values || subject instanceof Promise) {
      return Promise.all([subject, values]).then(([name, known]) => {
        limits.push(limitOf(match, slot, name, known))
        return limitsOf(matches, slot, naming, limits)
      })
    }
    limits.push(limitOf(match, slot, subject))
  }
  return limits
}

function limitOf(match: Match, slot: string | undefined, subject: string, values?: string[]) {
  const { terms, partitionKey, distinct, cost, period, penalty = terms.penalty } = match
  const limit: PolicyLimit = { terms, partitionKey, cost, subject }
  if (match.isFurther) limit.isFurther = true
  if (match.floor) limit.floor = match.floor
  if (terms.overrides) limit.override = { share: match.share ?? 0, scalesBurst: terms.burstIsLimit }
  if (period) limit.period = period
  if (penalty) limit.penalty = penalty
  if (distinct && values) {
    limit.distinct = distinct
    limit.values = values
    if (cost > 0) limit.cost = Math.max(cost, values.length)
  }
  if (terms.algorithm === 'concurrency' && slot !== undefined) limit.slot = slot
  return limit
}

/** The state of each match. Several quotas that one request has selected by a policy get one combined state, the strictest. */
export function limitStates(matches: Match[], states: QuotaState[]): LimitState[] {
  const limits: LimitState[] = []
  for (let index = 0; index < matches.length; index += 1) {
    const state = limitState(matches[index]!, states[index]!)
    const before = limits.at(-1)
    if (before && isSame(before.policy, matches[index]!))
      limits[limits.length - 1] = strictest(before, state)
    else limits.push(state)
  }
  return limits
}

/** True if a match shares the state of a policy, which the one before it has. */
const isSame = (policy: string, match: Match) => match.isFurther && match.terms.name === policy

/** The quota that binds of each state: of several the one that refuses for the longest time, else the one with the least remaining. */
export function bindingOf(matches: Match[], states: QuotaState[]): Match[] {
  const binding: Match[] = []
  let own = 0
  for (let index = 1; index < matches.length; index += 1) {
    const same = isSame(matches[own]!.terms.name, matches[index]!)
    if (same && binds(states[own]!, states[index]!)) continue
    if (!same) binding.push(matches[own]!)
    own = index
  }
  return [...binding, matches[own]!]
}

const waitOf = ({ retryAfterMs }: QuotaState) => retryAfterMs ?? Number.POSITIVE_INFINITY

/** True if the first of two states of a policy binds. */
export const binds = (one: QuotaState, other: QuotaState) =>
  one.allowed && other.allowed ? one.remaining <= other.remaining : waitOf(one) >= waitOf(other)

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
    retryAfterMs: longer(one.retryAfterMs, other.retryAfterMs),
    resetAfterMs: Math.max(one.resetAfterMs, other.resetAfterMs),
    ...(isTie && { nextAfterMs: Math.max(one.nextAfterMs, other.nextAfterMs) }),
    ...(bannedForMs > 0 && { bannedForMs }),
    ...(earliest < Number.POSITIVE_INFINITY && { decidedAt: earliest }),
  }
}

/** The public state of a limit. It names each field: a state of the store has others, which stay inside. */
export function limitState({ terms, cost, period }: Match, state: QuotaState): LimitState {
  const { name, mode, unit } = terms
  const { allowed, remaining, retryAfterMs, resetAfterMs, nextAfterMs } = state
  const { limit = terms.limit, reserved, bannedForMs, overriddenForMs, decidedAt } = state
  const windowMs = period ? period[1] - period[0] : terms.windowMs
  const numbers = { allowed, remaining, retryAfterMs, resetAfterMs, nextAfterMs }
  const result: LimitState = { policy: name, mode, limit, windowMs, cost, ...numbers }
  if (unit) result.unit = unit
  if (reserved !== undefined) result.reserved = reserved
  if (overriddenForMs !== undefined) result.overriddenForMs = overriddenForMs
  if (decidedAt !== undefined) result.decidedAt = decidedAt
  if (!bannedForMs) return result
  result.bannedForMs = bannedForMs
  // During a ban nothing remains, and no wait ends before the ban.
  result.remaining = 0
  result.resetAfterMs = Math.max(resetAfterMs, bannedForMs)
  result.nextAfterMs = Math.max(nextAfterMs, bannedForMs)
  return result
}

/** The longer of two waits; `null` (never) if one is `null`. */
export const longer = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? null : Math.max(one, other)
