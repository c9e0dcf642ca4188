/** Turns the states of a reply into the outcome of a question. */
import type { StoreReply, StoreState } from '../connection/store.ts'
import { bindingOf, limitStates, longer, type PolicyLimit } from './limit.ts'
import type { Match } from './matched.ts'
import type { Outcome, Pending } from './question.ts'
import { type Charges, chargeOf } from './settle.ts'

export function conclude(pending: Pending, reply: StoreReply): Outcome {
  const { limits, requests, slot, mode, settles, settlesAll } = pending
  const states = requests.length === 1 ? reply.states[0]! : statesOf(pending, reply.states)
  const outcome = outcomeOf(limits, states, reply.decidedAt)
  const { decision } = outcome
  const { allowed } = decision
  if (slot && allowed) decision.slot = slot
  if ((settles || settlesAll) && allowed && mode === 'take') {
    const charges = chargesOf(limits, states, reply.decidedAt, settlesAll)
    if (charges.size > 0) outcome.charges = charges
  }
  if (reply.replayed) outcome.replayed = true
  if (decision.fallback) {
    const failed = states.find(({ fallback }) => fallback?.error)
    if (failed) outcome.error = failed.fallback!.error!
  }
  return outcome
}

/** @param isEach true for all charges, false for those that depend on the response */
function chargesOf(limits: PolicyLimit[], states: StoreState[], decidedAt: number, isEach = false) {
  const charges: Charges = new Map()
  for (const [index, limit] of limits.entries()) {
    if (!isEach && (limit.cost === 0 || !limit.terms.settles)) continue
    const charge = chargeOf(states[index]!, decidedAt)
    if (charge) charges.set(limit, charge)
  }
  return charges
}

/** The states of a reply in the order of the policies. In the requests the enforced limits come first. */
function statesOf({ limits, requests }: Pending, states: StoreState[][]): StoreState[] {
  let nextEnforced = 0
  let nextShadow = requests[0]!.limits[0]!.terms.mode === 'enforce' ? 1 : 0
  return limits.map(({ terms }) =>
    terms.mode === 'enforce' ? states[0]![nextEnforced++]! : states[nextShadow++]![0]!,
  )
}

const isAnswered = ({ fallback }: StoreState) => fallback === undefined

export function outcomeOf(matches: Match[], states: StoreState[], decidedAt: number): Outcome {
  for (const { fallback } of states) if (fallback) return answeredInPart(matches, states, decidedAt)
  const limits = limitStates(matches, states)
  let [allowed, isBanned] = [true, false]
  let retryAfterMs: number | null = 0
  for (const limit of limits) {
    if (limit.mode !== 'enforce') continue
    allowed &&= limit.allowed
    if (limit.bannedForMs) isBanned = true
    if (!limit.allowed) retryAfterMs = longer(retryAfterMs, limit.retryAfterMs)
  }
  const reason = allowed ? 'within-limit' : isBanned ? 'banned' : 'limited'
  const outcome: Outcome = { decision: { allowed, reason, retryAfterMs, limits, decidedAt } }
  if (limits.length < matches.length) outcome.binding = bindingOf(matches, states)
  return outcome
}

/**
 * The outcome if `onStoreError` has answered for limits: it counts only if the others admit the request. Without `decidedAt`, which a client
 * could use for a refund: not all limits were charged.
 */
function answeredInPart(matches: Match[], states: StoreState[], at: number): Outcome {
  const isKnown = (_: unknown, index: number) => isAnswered(states[index]!)
  const outcome = outcomeOf(matches.filter(isKnown), states.filter(isAnswered), at)
  const { decidedAt, ...known } = outcome.decision
  const others = states.filter(
    (state, index) => !isAnswered(state) && matches[index]!.terms.mode === 'enforce',
  )
  const isComplete = others.length === 0 && known.limits.length > 0 // only shadow policies have no answer
  if (!known.allowed || isComplete) return { ...outcome, decision: known }
  const by = new Set(others.map(({ fallback }) => fallback!.by))
  const fallback = (['deny', 'local'] as const).find((one) => by.has(one)) ?? 'allow'
  const allowed = others.every((state) => state.allowed)
  const retryAfterMs = others.map((state) => state.retryAfterMs).reduce(longer, 0)
  const limits = allowed ? known.limits : known.limits.map(({ decidedAt: _, ...limit }) => limit)
  // With `deny` the isolate counts nothing.
  const isCounted = (_: unknown, index: number) =>
    isAnswered(states[index]!) || (fallback === 'local' && states[index]!.fallback!.by === 'local')
  return {
    ...outcome,
    decision: { ...known, reason: 'store-error', allowed, fallback, retryAfterMs, limits },
    counted: limitStates(matches.filter(isCounted), states.filter(isCounted)),
  }
}
