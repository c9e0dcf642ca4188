/**
 * Turns the store's reply, or its error, into the outcome of a question:
 * - `conclude`: the store has answered.
 * - `concludePartial`: only some shards have answered. For the others `onStoreError` answers.
 * - `fallBack`: the store has failed, so `onStoreError` answers.
 *
 * A late reply is also used: its states are remembered, and its charges are refunded if the request was refused.
 */
import type { Decision, QuotaState } from '../base/decision.ts'
import { StoreError } from '../base/errors.ts'
import type { Match } from '../match/match.ts'
import { NOT_SENT } from '../store/batching.ts'
import type { StoreReply, StoreResult, StoreState } from '../store/store.ts'
import { answerWithoutStore, type FallbackAnswer } from './fallback.ts'
import { limitStates, longestWait, type PolicyLimit } from './limit.ts'
import type { DecideOptions, LimiterParts, Outcome, Pending } from './question.ts'
import { type Charge, type Charged, dependsOnResponse, settle } from './settle.ts'

/** A question that was sent to the store. */
export interface Sent extends Pending {
  /** ms since the epoch */
  sentAt: number
}

/** The outcome of a reply. */
export function conclude(
  sent: Sent,
  reply: StoreReply,
  parts: LimiterParts,
  options: DecideOptions,
): Outcome | Promise<Outcome> {
  const states = statesOf(sent, reply.states)
  if (states.some(({ unanswered }) => unanswered)) {
    return concludePartial(sent, reply, states, parts, options)
  }
  const { limits } = sent
  const charged = learn(sent, reply, states, parts)
  return outcomeOf(sent, reply, decisionOf(limits, states, reply.decidedAt), [
    chargeOf(limits, charged, parts),
  ])
}

/** The part of a charge that depends on the response. */
const chargeOf = (limits: PolicyLimit[], charged: Charged, { store }: LimiterParts): Charge => ({
  limits: limits.filter((limit) => dependsOnResponse(limit) && charged.has(limit)),
  charged,
  store,
})

const outcomeOf = (
  { slot }: Sent,
  { replayed }: Pick<StoreReply, 'replayed'>,
  decision: Decision,
  charges: Charge[],
): Outcome => {
  const toSettle = decision.allowed ? charges.filter(({ limits }) => limits.length > 0) : []
  return {
    decision: slot && decision.allowed ? { ...decision, slot } : decision,
    ...(toSettle.length > 0 && { charges: toSettle }),
    ...(replayed && { replayed }),
  }
}

/** The outcome if only some shards answered. For the limits of the other shards `onStoreError` answers. */
async function concludePartial(
  sent: Sent,
  reply: StoreReply,
  states: StoreState[],
  parts: LimiterParts,
  options: DecideOptions,
): Promise<Outcome> {
  const { limits, mode } = sent
  const { store } = parts
  const unanswered = limits.filter((_, index) => states[index]!.unanswered)
  const fallback = reply.uncharged && (await answerWithoutStore(unanswered, mode, parts.local))
  const isRefused = fallback?.allowed === false
  const final = isRefused ? statesOf(sent, reply.uncharged!) : states
  const charged = learn(sent, reply, final, parts)
  for (const error of new Set(states.flatMap(({ unanswered }) => unanswered?.error ?? []))) {
    parts.onStoreError(error)
  }
  const late = mode === 'take' ? lateCharges(limits, states, isRefused) : undefined
  if (isRefused && mode === 'take' && !options.idempotency) {
    const refund = (charged: Charge['charged']) =>
      refundAll({ limits, charged, store }, parts, options)
    refund(chargedBy(limits, states, reply.decidedAt))
    if (late) refund(late)
  }
  const isAnswered = (_: unknown, index: number) => !states[index]!.unanswered
  const decision = decisionOf(limits.filter(isAnswered), final.filter(isAnswered), reply.decidedAt)
  return outcomeOf(sent, reply, withFallback(decision, fallback), [
    ...(fallback?.charge ? [fallback.charge] : []),
    chargeOf(limits, charged, parts),
    ...(late ? [{ limits: unanswered.filter(dependsOnResponse), charged: late, store }] : []),
  ])
}

/**
 * Merges the decision of some shards with the fallback for the others. Drops `decidedAt`: a client could use it for a refund, but not all
 * limits were charged.
 */
function withFallback(
  { decidedAt, ...decision }: Decision,
  fallback: FallbackAnswer | undefined,
): Decision {
  if (!fallback) return decision
  const { charge, ...answer } = fallback
  return { ...decision, reason: 'store-error', ...answer }
}

/**
 * The charges of shards that answer late, or `undefined` if there can be none. The slots of an admitted request are not included: they
 * are released by their id at its end, even without a late reply.
 */
function lateCharges(
  limits: PolicyLimit[],
  states: StoreState[],
  isRefused: boolean,
): Promise<Charged> | undefined {
  const late = limits.flatMap((limit, index) => {
    const { chargedLate } = (!limit.slot || isRefused ? states[index]!.unanswered : undefined) ?? {}
    return chargedLate ? [chargedLate.then((at) => [limit, at] as const)] : []
  })
  if (late.length === 0) return undefined
  return Promise.all(late).then(
    (all) => new Map(all.filter((one): one is [PolicyLimit, number] => one[1] !== undefined)),
  )
}

/** The outcome without a reply, by `onStoreError` of the policies. */
export async function fallBack(
  sent: Sent,
  error: StoreError,
  parts: LimiterParts,
  options: DecideOptions,
): Promise<Outcome> {
  const { limits, mode } = sent
  const { store, local } = parts
  parts.onStoreError(error)
  const { charge, ...answer } = await answerWithoutStore(limits, mode, local)
  const decision: Decision = { reason: 'store-error', limits: [], ...answer }
  const late = chargedLate(sent, error, parts)?.then((charged) => {
    // Match the late charge with units that the local store has charged. If the request was refused, only the rest is refunded.
    const unmatched = [...charged].filter(([limit]) => !local.matchLateCharge(limit))
    return answer.allowed ? charged : new Map(unmatched)
  })
  if (answer.allowed) {
    return outcomeOf(sent, {}, decision, [
      ...(charge ? [charge] : []),
      ...(late ? [{ limits: limits.filter(dependsOnResponse), charged: late, store }] : []),
    ])
  }
  // Refund a late charge, because the request is refused. Keep it with an idempotency key: a repeated call gets the charged reply.
  if (late && options.idempotency) options.waitUntil?.(late)
  else if (late) refundAll({ limits, charged: late, store }, parts, options)
  return { decision }
}

/** Refunds all charges of a refused request in the background. */
function refundAll(
  charge: Charge,
  { denialCache, onStoreError }: LimiterParts,
  { waitUntil }: DecideOptions,
): void {
  async function refund() {
    const charged = await charge.charged
    if (charged.size === 0) return
    await settle(charge, undefined, waitUntil).catch(onStoreError)
    const subjects = [...charged.keys()].map(({ subject }) => subject)
    denialCache?.forget(Date.now(), subjects) // also after an error: the refund may have been applied
  }
  const refunding = refund()
  waitUntil?.(refunding)
}

/**
 * The charges of a call without a reply in time, or `undefined` if there can be none. Also learns the states of a late reply. Without a
 * late reply slots may still be taken, so they count as charged: a release by their id is harmless.
 */
function chargedLate(
  sent: Sent,
  error: StoreError,
  parts: LimiterParts,
): Promise<Charged> | undefined {
  const slots = new Map(sent.limits.flatMap((limit) => (limit.slot ? [[limit, 0] as const] : [])))
  if (sent.mode !== 'take' || !(error.late || (slots.size > 0 && mayHaveRun(error))))
    return undefined
  return Promise.resolve(error.late as Promise<StoreResult> | undefined).then((reply) => {
    if (reply && !(reply instanceof StoreError))
      return learn(sent, reply, statesOf(sent, reply.states), parts)
    return mayHaveRun(reply ?? error) ? slots : new Map()
  })
}

const mayHaveRun = ({ code, cause }: StoreError) =>
  (code === 'timeout' || code === 'unreachable' || code === 'bad-reply') && cause !== NOT_SENT

/**
 * Remembers the states of a reply in the denial cache and the local store.
 * @returns the charged limits. Slots count as charged if a shard without an answer may have taken them
 */
function learn(
  { limits, mode, sentAt }: Sent,
  { decidedAt, replayed, leased }: StoreReply,
  states: StoreState[],
  { denialCache, local }: LimiterParts,
): Charged {
  const receivedAt = Date.now()
  const isTake = mode === 'take'
  const isComplete = states.every(({ unanswered }) => !unanswered)
  const passes = limits.every(
    ({ policy }, index) =>
      policy.mode === 'shadow' || states[index]!.allowed || states[index]!.unanswered,
  )
  if (isTake && !passes && isComplete && !leased) {
    denialCache?.keep(limits, states, decidedAt, sentAt, receivedAt)
  }
  const charged = isTake && passes ? chargedBy(limits, states, decidedAt) : new Map()
  for (const [index, limit] of limits.entries()) {
    const state = states[index]!
    const { onStoreError, mode } = limit.policy
    if (state.unanswered) {
      if (limit.slot && mayHaveRun(state.unanswered.error)) charged.set(limit, 0)
    } else if (onStoreError === 'local' && mode === 'enforce' && !replayed) {
      // Do not learn from a replay: it has the states of the first call.
      local.learn(limit, state, state.decidedAt ?? decidedAt, receivedAt)
    }
  }
  return charged
}

/** The limits that a call has charged, each with the time of its charge. */
const chargedBy = (limits: PolicyLimit[], states: StoreState[], decidedAt: number): Charged =>
  new Map(
    limits.flatMap((limit, index) => {
      const { allowed, unanswered, decidedAt: chargedAt = decidedAt } = states[index]!
      return allowed && !unanswered && limit.cost > 0 ? [[limit, chargedAt] as const] : []
    }),
  )

/** The states of a reply in the order of the policies. In the requests the enforced limits come first. */
function statesOf({ limits, requests }: Pending, states: StoreState[][]): StoreState[] {
  const byLimit = new Map(
    requests.flatMap(({ limits }, r) => limits.map((limit, l) => [limit, states[r]![l]!] as const)),
  )
  return limits.map((limit) => byLimit.get(limit)!)
}

/** Makes the decision from the states of all limits. */
export function decisionOf(matches: Match[], states: QuotaState[], decidedAt: number): Decision {
  const limits = limitStates(matches, states)
  const enforced = limits.filter(({ mode }) => mode === 'enforce')
  const retryAfterMs = longestWait(enforced)
  const banned = enforced.some(({ bannedForMs }) => bannedForMs)
  return {
    allowed: retryAfterMs === 0,
    reason: retryAfterMs === 0 ? 'within-limit' : banned ? 'banned' : 'limited',
    retryAfterMs,
    limits,
    decidedAt,
  }
}
