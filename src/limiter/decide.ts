/**
 * The step `decide`. `prepare` answers a question without the store if it can: from a deny rule, the denial cache or the shield.
 * `decide` sends all other questions to the store in one call, and falls back to `onStoreError` if the store does not answer.
 */
import { asStoreError, StoreError } from '../base/errors.ts'
import { isMatch, type Match } from '../match/match.ts'
import type { StoreResult } from '../store/store.ts'
import { conclude, decisionOf, fallBack } from './conclude.ts'
import { limitOf, type PolicyLimit } from './limit.ts'
import type { DecideOptions, LimiterParts, Outcome, Pending, Question } from './question.ts'

/** Answers a question without the store, or makes the limits for the store to decide. */
export async function prepare(
  { matched: { denied, policies, shield: shieldKey }, mode = 'take', slot: givenSlot }: Question,
  {
    nameSubject,
    denialCache,
    shield,
  }: Pick<LimiterParts, 'nameSubject' | 'denialCache' | 'shield'>,
): Promise<Pending | Outcome> {
  if (denied) {
    return {
      decision: { allowed: false, reason: 'denied', denied, retryAfterMs: null, limits: [] },
    }
  }
  const matches = policies.filter(isMatch)
  if (matches.length === 0) {
    return { decision: { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] } }
  }
  const denial = mode === 'take' ? denialCache?.find(matches, Date.now()) : undefined
  if (denial) return { decision: decisionOf(denial.limits, denial.states, denial.decidedAt) }
  if (shield && shieldKey && mode === 'take' && enforced(matches).some(({ cost }) => cost > 0)) {
    const decision = await shield(shieldKey)
    if (decision) return { decision }
  }
  const hasSlots = matches.some(({ policy }) => policy.algorithm === 'concurrency')
  const slot = hasSlots ? (givenSlot ?? crypto.randomUUID()) : undefined
  const limits: PolicyLimit[] = []
  // One after the other: most policies have the same key, and its subject is cached after the first.
  for (const match of matches) limits.push(await limitOf(match, slot, nameSubject))
  const enforcing = enforced(limits)
  const follow = mode === 'take' && enforcing.length > 0 ? 'follow' : mode
  const requests: Pending['requests'] = limits
    .filter(({ policy }) => policy.mode === 'shadow')
    .map((limit) => ({ mode: follow, limits: [limit] }))
  if (enforcing.length > 0) requests.unshift({ mode, limits: enforcing })
  return { limits, requests, mode, slot: mode === 'take' ? slot : undefined }
}

const enforced = <M extends Match>(matches: M[]) =>
  matches.filter(({ policy }) => policy.mode === 'enforce')

/**
 * Prepares and decides several questions independently, in one round trip.
 * @throws {StoreError} only `idempotency-conflict`: for other errors `onStoreError` answers
 */
export async function decideEach(
  questions: Question[],
  parts: LimiterParts,
  options: DecideOptions = {},
): Promise<Outcome[]> {
  // With an idempotency key the store must decide: it may already have the reply.
  const usedParts = options.idempotency
    ? { ...parts, denialCache: undefined, shield: undefined }
    : parts
  const startedAt = Date.now()
  const prepared = await Promise.all(questions.map((question) => prepare(question, usedParts)))
  const pending = prepared.filter((one): one is Pending => 'limits' in one)
  const spentMs = (options.spentMs ?? 0) + Math.max(0, Date.now() - startedAt)
  const outcomes = await decide(pending, usedParts, { ...options, spentMs })
  return prepared.map((one) => ('limits' in one ? outcomes[pending.indexOf(one)]! : one))
}

/**
 * Decides prepared questions independently, in one call to the store.
 * @throws {StoreError} only `idempotency-conflict`: for other errors `onStoreError` answers
 */
export async function decide(
  pending: Pending[],
  parts: LimiterParts,
  options: DecideOptions = {},
): Promise<Outcome[]> {
  if (pending.length === 0) return []
  const sentAt = Date.now()
  const replies = await callStore(pending, parts, options)
  return Promise.all(
    pending.map((one, index): Promise<Outcome> | Outcome => {
      const reply = replies[index]!
      const sent = { ...one, sentAt }
      if (!(reply instanceof StoreError)) return conclude(sent, reply, parts, options)
      if (reply.code === 'idempotency-conflict') throw reply
      return fallBack(sent, reply, parts, options)
    }),
  )
}

/** Calls the store. Never rejects: an error is the result of each question. */
async function callStore(
  pending: Pending[],
  { store }: LimiterParts,
  { spentMs = 0, ...rest }: DecideOptions,
): Promise<StoreResult[]> {
  const lists = pending.map(({ requests }) => requests)
  const limits = pending.flatMap((one) => one.limits)
  const options = {
    ...rest,
    deadlineMs: deadlineOf(limits, pending.length, spentMs),
    allowPartial: true,
  }
  try {
    return lists.length === 1
      ? [await store.decide(lists[0]!, options)]
      : await store.decideEach(lists, options)
  } catch (error) {
    return pending.map(() => asStoreError(error))
  }
}

/** The extra time for each limit if a call decides several questions, ms. */
const LIMIT_MS = 0.1

/** The deadline for the store: the shortest deadline of the policies, less the time that has passed, ms. */
function deadlineOf(limits: PolicyLimit[], questions: number, spentMs: number): number {
  const enforcing = enforced(limits)
  const relevant = enforcing.length > 0 ? enforcing : limits // a shadow policy does not shorten the deadline
  const wholeMs = Math.min(...relevant.map(({ policy }) => policy.deadlineMs))
  // A key function may wait for a slow client, which must still be counted. So the store gets at least half of the deadline.
  const leastMs = spentMs > wholeMs / 2 && limits.some(hasKeyFunction) ? wholeMs / 2 : 1
  const listMs = questions > 1 ? limits.length * LIMIT_MS : 0
  return Math.ceil(Math.max(leastMs, wholeMs - spentMs) + listMs)
}

const hasKeyFunction = ({ policy: { key, onMissingKey, plan } }: Match) =>
  [
    ...key,
    ...(typeof onMissingKey === 'object' ? onMissingKey.key : []),
    ...(plan ? [plan.key] : []),
  ].some(({ source }) => source === 'function')
