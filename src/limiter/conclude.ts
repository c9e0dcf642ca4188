/** From the store's reply, or its error, to an outcome. */
import type { Decision, QuotaState } from '../base/decision.ts'
import { StoreError } from '../base/errors.ts'
import type { Match } from '../match/match.ts'
import { NOT_SENT } from '../store/batching.ts'
import type { StoreReply, StoreResult, StoreState } from '../store/store.ts'
import { answerWithoutStore } from './fallback.ts'
import { limitStates, longestWait, type PolicyLimit } from './limit.ts'
import type { DecideOptions, LimiterParts, Outcome, Pending } from './question.ts'
import { type Charge, type Charged, isOpen, settle } from './settle.ts'

/** A question that the store was asked. */
export interface Sent extends Pending {
  /** ms since the epoch */
  sentAt: number
}

/** The outcome by a reply. Policies' `onStoreError` answers for limits whose shard gave none. */
export async function conclude(
  sent: Sent,
  reply: StoreReply,
  parts: LimiterParts,
  options: DecideOptions,
): Promise<Outcome> {
  const { limits: all, mode, slot } = sent
  const silent = all.filter((limit) => stateOf(sent, reply.states, limit).unanswered)
  const fallback = reply.uncharged && (await answerWithoutStore(silent, mode, parts.local))
  const isRefused = fallback?.allowed === false
  if (isRefused && !options.idempotency) refundPartial(sent, reply, parts, options)
  const { states, charged } = learn(
    sent,
    isRefused ? { ...reply, states: reply.uncharged! } : reply,
    parts,
  )
  for (const error of new Set(states.flatMap(({ unanswered }) => unanswered?.error ?? []))) {
    parts.onStoreError(error)
  }
  const isAnswered = (_: unknown, index: number) => !states[index]!.unanswered
  const decided = decisionOf(all.filter(isAnswered), states.filter(isAnswered), reply.decidedAt)
  const decision = silent.length > 0 ? inPart(decided, fallback) : decided
  const replayed = reply.replayed && { replayed: true as const }
  if (!decision.allowed) return { decision, ...replayed }
  const open = all.filter((limit) => isOpen(limit) && charged.has(limit))
  const { store } = parts
  const late = lateCharges(silent.filter(isOpen), sent, reply.states)
  const charges = [
    ...(fallback?.charge ? [fallback.charge] : []),
    ...(open.length > 0 ? [{ limits: open, charged, store }] : []),
    ...(late ? [{ limits: silent.filter(isOpen), charged: late, store }] : []),
  ]
  return {
    decision: slot ? { ...decision, slot } : decision,
    ...(charges.length > 0 && { charges }),
    ...replayed,
  }
}

/** What some shards decided, and for the others the fallback. Without a time: what has one may be refunded, and not all was charged. */
function inPart(
  { decidedAt, ...decision }: Decision,
  fallback: Awaited<ReturnType<typeof answerWithoutStore>> | undefined,
): Decision {
  if (!fallback) return decision
  const { charge, ...answer } = fallback
  return { ...decision, reason: 'store-error', ...answer }
}

/** Refunds what shards have charged for a request that the fallback refused, also where they answer late. */
function refundPartial(sent: Sent, reply: StoreReply, parts: LimiterParts, options: DecideOptions) {
  const { limits, mode } = sent
  if (mode !== 'take') return
  const { store } = parts
  const refund = (charged: Charge['charged']) =>
    options.waitUntil?.(refundAll({ limits, charged, store }, parts, options))
  refund(chargedBy(limits, (limit) => stateOf(sent, reply.states, limit), reply.decidedAt))
  const late = lateCharges(limits, sent, reply.states)
  if (late) refund(late)
}

/** The charges of shards that answer late; absent where none can. */
function lateCharges(
  limits: PolicyLimit[],
  sent: Sent,
  states: StoreState[][],
): Promise<Charged> | undefined {
  if (sent.mode !== 'take') return undefined
  const late = limits.flatMap((limit) => {
    const chargedLate = limit.slot
      ? undefined
      : stateOf(sent, states, limit).unanswered?.chargedLate
    return chargedLate ? [chargedLate.then((at) => [limit, at] as const)] : []
  })
  if (late.length === 0) return undefined
  return Promise.all(late).then(
    (all) => new Map(all.filter((one): one is [PolicyLimit, number] => one[1] !== undefined)),
  )
}

/** The outcome without a reply, by the policies' `onStoreError`. */
export async function fallBack(
  sent: Sent,
  error: StoreError,
  parts: LimiterParts,
  options: DecideOptions,
): Promise<Outcome> {
  const { limits, slot, mode } = sent
  const { store, local } = parts
  parts.onStoreError(error)
  const { charge, ...answer } = await answerWithoutStore(limits, mode, local)
  const decision: Decision = { reason: 'store-error', limits: [], ...answer }
  const late = chargedLate(sent, error, parts)?.then((charged) => {
    // The store's charge stands for a request that was admitted here. A charge that stands for none is refunded.
    const spare = [...charged.keys()].filter((limit) => !local.pays(limit))
    return answer.allowed ? charged : new Map(spare.map((limit) => [limit, charged.get(limit)!]))
  })
  if (answer.allowed) {
    const open = limits.filter(isOpen)
    const charges = [
      ...(charge ? [charge] : []),
      ...(late && open.length > 0 ? [{ limits: open, charged: late, store }] : []),
    ]
    return {
      decision: slot ? { ...decision, slot } : decision,
      ...(charges.length > 0 && { charges }),
    }
  }
  // A refusal costs nothing. A call with an idempotency key may be repeated, and then finds the answer that it was charged for.
  if (late && options.idempotency) options.waitUntil?.(late)
  else if (late) options.waitUntil?.(refundAll({ limits, charged: late, store }, parts, options))
  return { decision }
}

/** Refunds everything that a refused request was charged. Never rejects. */
async function refundAll(
  charge: Charge,
  { denialCache, onStoreError }: LimiterParts,
  { waitUntil }: DecideOptions,
): Promise<void> {
  const charged = await charge.charged
  if (charged.size === 0) return
  await settle(charge, undefined, waitUntil).catch(onStoreError)
  const subjects = [...charged.keys()].map(({ subject }) => subject)
  denialCache?.forget(Date.now(), subjects) // also after an error: the refund may have counted
}

/**
 * The charges of a call whose reply did not come in time; absent where there can be none. The late reply also says how the limits stand.
 * Without a late reply slots may be held all the same: they are released by their id.
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
    if (reply && !(reply instanceof StoreError)) return learn(sent, reply, parts).charged
    return mayHaveRun(reply ?? error) ? slots : new Map()
  })
}

const mayHaveRun = ({ code, cause }: StoreError) =>
  (code === 'timeout' || code === 'unreachable' || code === 'bad-reply') && cause !== NOT_SENT

/** Remembers what a reply says of each limit, and when each was charged. */
function learn(sent: Sent, reply: StoreReply, { denialCache, local }: LimiterParts) {
  const { limits, mode, sentAt } = sent
  const receivedAt = Date.now()
  const states = limits.map((limit) => stateOf(sent, reply.states, limit))
  const isWhole = states.every(({ unanswered }) => !unanswered)
  const passes = limits.every(
    ({ policy }, index) =>
      policy.mode === 'shadow' || states[index]!.allowed || states[index]!.unanswered,
  )
  if (mode === 'take' && !passes && isWhole && !reply.leased) {
    denialCache?.keep(limits, states, reply.decidedAt, sentAt, receivedAt)
  }
  for (const [index, limit] of limits.entries()) {
    const state = states[index]!
    const isLocal = limit.policy.onStoreError === 'local' && limit.policy.mode === 'enforce'
    // A replay says how the limit stood at the first call.
    if (isLocal && !state.unanswered && !reply.replayed)
      local.learn(limit, state, state.decidedAt ?? reply.decidedAt, receivedAt)
  }
  const isCharged = mode === 'take' && passes
  const charged = isCharged
    ? chargedBy(limits, (_, index) => states[index]!, reply.decidedAt)
    : new Map<PolicyLimit, number>()
  for (const [index, limit] of limits.entries()) {
    const { unanswered } = states[index]!
    if (limit.slot && unanswered && mayHaveRun(unanswered.error)) charged.set(limit, 0)
  }
  return { states, charged }
}

/** The limits that a reply has charged, each with the time of its charge. */
const chargedBy = (
  limits: PolicyLimit[],
  stateOf: (limit: PolicyLimit, index: number) => StoreState,
  decidedAt: number,
): Charged =>
  new Map(
    limits.flatMap((limit, index) => {
      const state = stateOf(limit, index)
      const isCharged = state.allowed && !state.unanswered && limit.cost > 0
      return isCharged ? [[limit, state.decidedAt ?? decidedAt] as const] : []
    }),
  )

/** The state of a limit in a reply. */
function stateOf({ requests }: Sent, states: StoreState[][], limit: PolicyLimit): StoreState {
  for (const [index, { limits }] of requests.entries()) {
    const at = limits.indexOf(limit)
    if (at >= 0) return states[index]![at]!
  }
  throw new TypeError('a limit that the store was not asked about')
}

/** The decision by how all limits stand. */
export function decisionOf(matches: Match[], states: QuotaState[], decidedAt: number): Decision {
  const limits = limitStates(matches, states)
  const deciding = limits.filter(({ mode }) => mode === 'enforce')
  const retryAfterMs = longestWait(deciding)
  const banned = deciding.some(({ bannedForMs }) => bannedForMs)
  return {
    allowed: retryAfterMs === 0,
    reason: retryAfterMs === 0 ? 'within-limit' : banned ? 'banned' : 'limited',
    retryAfterMs,
    limits,
    decidedAt,
  }
}
