/** From the store's reply, or its error, to an outcome. */
import type { Decision, QuotaState } from '../base/decision.ts'
import { StoreError } from '../base/errors.ts'
import type { Match } from '../match/match.ts'
import { NOT_SENT } from '../store/batching.ts'
import type { StoreReply, StoreResult, StoreState } from '../store/store.ts'
import { answerWithoutStore, type FallbackAnswer } from './fallback.ts'
import { limitStates, longestWait, type PolicyLimit } from './limit.ts'
import type { DecideOptions, LimiterParts, Outcome, Pending } from './question.ts'
import { type Charge, type Charged, isOpen, settle } from './settle.ts'

/** A question that the store was asked. */
export interface Sent extends Pending {
  /** ms since the epoch */
  sentAt: number
}

/** The outcome by a reply. */
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
    openCharge(limits, charged, parts),
  ])
}

/** The limits that were charged, and whose charge the response settles. */
const openCharge = (limits: PolicyLimit[], charged: Charged, { store }: LimiterParts): Charge => ({
  limits: limits.filter((limit) => isOpen(limit) && charged.has(limit)),
  charged,
  store,
})

const outcomeOf = (
  { slot }: Sent,
  { replayed }: Pick<StoreReply, 'replayed'>,
  decision: Decision,
  charges: Charge[],
): Outcome => {
  const open = decision.allowed ? charges.filter(({ limits }) => limits.length > 0) : []
  return {
    decision: slot && decision.allowed ? { ...decision, slot } : decision,
    ...(open.length > 0 && { charges: open }),
    ...(replayed && { replayed }),
  }
}

/** The outcome by a reply of some shards. Policies' `onStoreError` answers for the limits of the others. */
async function concludePartial(
  sent: Sent,
  reply: StoreReply,
  states: StoreState[],
  parts: LimiterParts,
  options: DecideOptions,
): Promise<Outcome> {
  const { limits, mode } = sent
  const { store } = parts
  const silent = limits.filter((_, index) => states[index]!.unanswered)
  const fallback = reply.uncharged && (await answerWithoutStore(silent, mode, parts.local))
  const isRefused = fallback?.allowed === false
  const told = isRefused ? statesOf(sent, reply.uncharged!) : states
  const charged = learn(sent, reply, told, parts)
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
  const answered = decisionOf(limits.filter(isAnswered), told.filter(isAnswered), reply.decidedAt)
  return outcomeOf(sent, reply, inPart(answered, fallback), [
    ...(fallback?.charge ? [fallback.charge] : []),
    openCharge(limits, charged, parts),
    ...(late ? [{ limits: silent.filter(isOpen), charged: late, store }] : []),
  ])
}

/** What some shards decided, and for the others the fallback. Without a time: what has one may be refunded, and not all was charged. */
function inPart(
  { decidedAt, ...decision }: Decision,
  fallback: FallbackAnswer | undefined,
): Decision {
  if (!fallback) return decision
  const { charge, ...answer } = fallback
  return { ...decision, reason: 'store-error', ...answer }
}

/**
 * The charges of shards that answer late; absent where there can be none. The slots of a request that passes are released by their id at
 * its end, without a late reply.
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

/** The outcome without a reply, by the policies' `onStoreError`. */
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
    // The store's charge stands for a request that was admitted here. A charge that stands for none is refunded.
    const spare = [...charged.keys()].filter((limit) => !local.pays(limit))
    return answer.allowed ? charged : new Map(spare.map((limit) => [limit, charged.get(limit)!]))
  })
  if (answer.allowed) {
    return outcomeOf(sent, {}, decision, [
      ...(charge ? [charge] : []),
      ...(late ? [{ limits: limits.filter(isOpen), charged: late, store }] : []),
    ])
  }
  // A refusal costs nothing. A call with an idempotency key may be repeated, and then finds the answer that it was charged for.
  if (late && options.idempotency) options.waitUntil?.(late)
  else if (late) refundAll({ limits, charged: late, store }, parts, options)
  return { decision }
}

/** Refunds everything that a refused request was charged, in the background. */
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
    denialCache?.forget(Date.now(), subjects) // also after an error: the refund may have counted
  }
  const refunding = refund()
  waitUntil?.(refunding)
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
    if (reply && !(reply instanceof StoreError))
      return learn(sent, reply, statesOf(sent, reply.states), parts)
    return mayHaveRun(reply ?? error) ? slots : new Map()
  })
}

const mayHaveRun = ({ code, cause }: StoreError) =>
  (code === 'timeout' || code === 'unreachable' || code === 'bad-reply') && cause !== NOT_SENT

/**
 * Remembers what a reply says of each limit.
 * @returns when each limit was charged; slots that a shard without an answer may hold count as charged
 */
function learn(
  { limits, mode, sentAt }: Sent,
  { decidedAt, replayed, leased }: StoreReply,
  states: StoreState[],
  { denialCache, local }: LimiterParts,
): Charged {
  const receivedAt = Date.now()
  const isTake = mode === 'take'
  const isWhole = states.every(({ unanswered }) => !unanswered)
  const passes = limits.every(
    ({ policy }, index) =>
      policy.mode === 'shadow' || states[index]!.allowed || states[index]!.unanswered,
  )
  if (isTake && !passes && isWhole && !leased) {
    denialCache?.keep(limits, states, decidedAt, sentAt, receivedAt)
  }
  const charged = isTake && passes ? chargedBy(limits, states, decidedAt) : new Map()
  for (const [index, limit] of limits.entries()) {
    const state = states[index]!
    const { onStoreError, mode } = limit.policy
    if (state.unanswered) {
      if (limit.slot && mayHaveRun(state.unanswered.error)) charged.set(limit, 0)
    } else if (onStoreError === 'local' && mode === 'enforce' && !replayed) {
      // A replay would say how the limit stood at the first call.
      local.learn(limit, state, state.decidedAt ?? decidedAt, receivedAt)
    }
  }
  return charged
}

/** The limits that a reply has charged, each with the time of its charge. */
const chargedBy = (limits: PolicyLimit[], states: StoreState[], decidedAt: number): Charged =>
  new Map(
    limits.flatMap((limit, index) => {
      const { allowed, unanswered, decidedAt: own = decidedAt } = states[index]!
      return allowed && !unanswered && limit.cost > 0 ? [[limit, own] as const] : []
    }),
  )

/** The states of a reply in the order of the policies: the requests have the enforced limits first. */
function statesOf({ limits, requests }: Pending, states: StoreState[][]): StoreState[] {
  const byLimit = new Map(
    requests.flatMap(({ limits }, r) => limits.map((limit, l) => [limit, states[r]![l]!] as const)),
  )
  return limits.map((limit) => byLimit.get(limit)!)
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
