/** The step `decide`: one call to the store, or an answer from memory. */
import { asStoreError, StoreError } from '../base/errors.ts'
import { isMatch, type Match } from '../match/match.ts'
import type { StoreResult } from '../store/store.ts'
import { conclude, decisionOf, fallBack } from './conclude.ts'
import { limitOf, type PolicyLimit } from './limit.ts'
import type { DecideOptions, LimiterParts, Outcome, Pending, Question } from './question.ts'

/** Turns a question into the limits to ask the store about, or answers it from memory. */
export async function prepare(
  { matched: { denied, policies, shield: shieldKey }, mode = 'take', slot: ownSlot }: Question,
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
  const slot = hasSlots ? (ownSlot ?? crypto.randomUUID()) : undefined
  const limits: PolicyLimit[] = []
  // In turn: most policies count by the same key, and the name of a subject is known after the first.
  for (const one of matches) limits.push(await limitOf(one, slot, nameSubject))
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
 * Prepares and decides several questions, each by itself, in one round trip.
 * @throws {StoreError} `idempotency-conflict` only: other errors are answered by `onStoreError`
 */
export async function decideEach(
  questions: Question[],
  parts: LimiterParts,
  options: DecideOptions = {},
): Promise<Outcome[]> {
  // A repeated call has its answer already.
  const near = options.idempotency ? { ...parts, denialCache: undefined, shield: undefined } : parts
  const startedAt = Date.now()
  const prepared = await Promise.all(questions.map((question) => prepare(question, near)))
  const pending = prepared.filter((one): one is Pending => 'limits' in one)
  const spentMs = (options.spentMs ?? 0) + Math.max(0, Date.now() - startedAt)
  const outcomes = await decide(pending, near, { ...options, spentMs })
  return prepared.map((one) => ('limits' in one ? outcomes[pending.indexOf(one)]! : one))
}

/**
 * Decides prepared questions, each by itself, in one call to the store.
 * @throws {StoreError} `idempotency-conflict` only: other errors are answered by `onStoreError`
 */
export async function decide(
  pending: Pending[],
  parts: LimiterParts,
  options: DecideOptions = {},
): Promise<Outcome[]> {
  if (pending.length === 0) return []
  const sentAt = Date.now()
  const replies = await askStore(pending, parts, options)
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

/** Errors are values. */
async function askStore(
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

/** The share of one limit of a list, ms. */
const LIMIT_MS = 0.1

/** How long the store may take, ms. */
function deadlineOf(limits: PolicyLimit[], questions: number, spentMs: number): number {
  const enforcing = enforced(limits)
  const waiting = enforcing.length > 0 ? enforcing : limits // a shadow policy does not shorten the wait of others
  const wholeMs = Math.min(...waiting.map(({ policy }) => policy.deadlineMs))
  // A key function may wait for the client, and a slow client must be counted all the same: the store has at least half of the deadline.
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
