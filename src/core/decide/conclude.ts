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
import type { Soon } from '../base/when-known.ts'
import { NOT_SENT } from '../connection/batching.ts'
import type { StoreReply, StoreResult, StoreState } from '../connection/store.ts'
import type { Match } from '../program/match.ts'
import { answerWithoutStore, type FallbackAnswer } from './fallback.ts'
import { limitStates, longer, type PolicyLimit } from './limit.ts'
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
): Soon<Outcome> {
  const states = statesOf(sent, reply.states)
  for (const { unanswered } of states) {
    if (unanswered) return concludePartial(sent, reply, states, parts, options)
  }
  const { limits } = sent
  learn(sent, reply, states, parts)
  const decision = decisionOf(limits, states, reply.decidedAt)
  const charges = limits.some(dependsOnResponse)
    ? [chargeOf(limits, chargedIn(sent, reply, states), parts)]
    : NO_CHARGES
  return outcomeOf(sent, reply, decision, charges)
}

const NO_CHARGES: Charge[] = []

/** The part of a charge that depends on the response. */
const chargeOf = (limits: PolicyLimit[], charged: Charged, { store }: LimiterParts): Charge => ({
  limits: limits.filter((limit) => dependsOnResponse(limit) && charged.has(limit)),
  charged,
  store,
})

function outcomeOf(
  { slot }: Sent,
  { replayed }: Pick<StoreReply, 'replayed'>,
  decision: Decision,
  charges: Charge[],
): Outcome {
  const { allowed } = decision
  const outcome: Outcome = { decision: slot && allowed ? { ...decision, slot } : decision }
  if (allowed && charges.length > 0) {
    const toSettle = charges.filter(({ limits }) => limits.length > 0)
    if (toSettle.length > 0) outcome.charges = toSettle
  }
  if (replayed) outcome.replayed = replayed
  return outcome
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
  learn(sent, reply, final, parts)
  const charged = chargedIn(sent, reply, final)
  for (const error of new Set(states.flatMap(({ unanswered }) => unanswered?.error ?? []))) {
    parts.onStoreError(error)
  }
  const late = mode === 'take' ? lateCharges(limits, states, isRefused) : undefined
  const isAnswered = (_: unknown, index: number) => !states[index]!.unanswered
  const decision = decisionOf(limits.filter(isAnswered), final.filter(isAnswered), reply.decidedAt)
  if (mode === 'take' && !options.idempotency) {
    const refund = (charged: Charge['charged']) =>
      refundAll({ limits, charged, store }, parts, options)
    if (isRefused) refund(chargedBy(limits, states, reply.decidedAt))
    if (isRefused && late) refund(late)
    if (isRefused || !decision.allowed) refund(slotsIn(limits, states))
  }
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
    if (!reply || reply instanceof StoreError) return mayHaveRun(reply ?? error) ? slots : new Map()
    const states = statesOf(sent, reply.states)
    learn(sent, reply, states, parts)
    return chargedIn(sent, reply, states)
  })
}

const mayHaveRun = ({ code, cause }: StoreError) =>
  (code === 'timeout' || code === 'unreachable' || code === 'bad-reply') && cause !== NOT_SENT

/** Remembers the states of a reply in the denial cache and the local store. */
function learn(
  { limits, mode, sentAt }: Sent,
  { decidedAt, replayed, leased }: StoreReply,
  states: StoreState[],
  { denialCache, local }: LimiterParts,
): void {
  const receivedAt = Date.now()
  if (denialCache && mode === 'take' && !leased && !passes(limits, states)) {
    if (states.every(({ unanswered }) => !unanswered)) {
      denialCache.keep(limits, states, decidedAt, sentAt, receivedAt)
    }
  }
  if (replayed) return // it has the states of the first call
  for (let index = 0; index < limits.length; index += 1) {
    const limit = limits[index]!
    const { onStoreError, mode } = limit.policy
    const state = states[index]!
    if (onStoreError === 'local' && mode === 'enforce' && !state.unanswered) {
      local.learn(limit, state, state.decidedAt ?? decidedAt, receivedAt)
    }
  }
}

/** True if no enforced limit refuses the request. */
function passes(limits: PolicyLimit[], states: StoreState[]): boolean {
  for (let index = 0; index < limits.length; index += 1) {
    const { allowed, unanswered } = states[index]!
    if (!allowed && !unanswered && limits[index]!.policy.mode === 'enforce') return false
  }
  return true
}

/** The limits that a reply has charged. Slots count as charged if a shard without an answer may have taken them. */
function chargedIn(
  { limits, mode }: Sent,
  { decidedAt }: StoreReply,
  states: StoreState[],
): Charged {
  const isCharged = mode === 'take' && passes(limits, states)
  const charged = isCharged ? chargedBy(limits, states, decidedAt) : []
  return new Map([...charged, ...slotsIn(limits, states)])
}

/** The slots that a shard without an answer may have taken. A release by their id is harmless if it has not. */
const slotsIn = (limits: PolicyLimit[], states: StoreState[]): Charged =>
  new Map(
    limits.flatMap((limit, index) => {
      const { unanswered } = states[index]!
      return unanswered && limit.slot && mayHaveRun(unanswered.error) ? [[limit, 0] as const] : []
    }),
  )

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
  if (requests.length === 1) return states[0]!
  let nextEnforced = 0
  let nextShadow = requests[0]!.limits[0]!.policy.mode === 'enforce' ? 1 : 0
  return limits.map(({ policy }) =>
    policy.mode === 'enforce' ? states[0]![nextEnforced++]! : states[nextShadow++]![0]!,
  )
}

/** Makes the decision from the states of all limits. */
export function decisionOf(matches: Match[], states: QuotaState[], decidedAt: number): Decision {
  const limits = limitStates(matches, states)
  let [allowed, isBanned] = [true, false]
  let retryAfterMs: number | null = 0
  for (const limit of limits) {
    if (limit.mode !== 'enforce') continue
    allowed &&= limit.allowed
    if (limit.bannedForMs) isBanned = true
    retryAfterMs = longer(retryAfterMs, limit.retryAfterMs)
  }
  const reason = allowed ? 'within-limit' : isBanned ? 'banned' : 'limited'
  return { allowed, reason, retryAfterMs, limits, decidedAt }
}
