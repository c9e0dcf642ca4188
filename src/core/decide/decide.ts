/** The step `decide`. `prepare` answers a question without the store if it can; the store decides the others in one call. */
import { contains } from '../base/contains.ts'
import { StoreError } from '../base/errors.ts'
import { type Soon, whenAllKnown, whenKnown } from '../base/when-known.ts'
import type { StoreReply } from '../connection/store.ts'
import { conclude, outcomeOf } from './conclude.ts'
import type { DenialCache } from './denial-cache.ts'
import { limitsOf, type PolicyLimit } from './limit.ts'
import type { Match, Matched } from './matched.ts'
import type {
  DecideOptions,
  LimiterParts,
  Outcome,
  Pending,
  Question,
  StoreAnswer,
  WaitingRequest,
} from './question.ts'

/** The refusal of a request that is known without a call: by a deny rule, or from the denial cache. */
export function knownRefusal(
  matched: Matched,
  denialCache: DenialCache | undefined,
): Outcome | undefined {
  const { denied, policies, unread } = matched
  if (denied) {
    return {
      decision: { allowed: false, reason: 'denied', denied, retryAfterMs: null, limits: [] },
      decidedBy: 'list',
    }
  }
  // These may refuse too, and the store must count that refusal towards a ban.
  if (unread?.some(({ penalty, mode }) => penalty && mode === 'enforce')) return undefined
  const denial = denialCache?.find(policies, Date.now())
  if (!denial) return undefined
  const { limits, states, decidedAt } = denial
  return { ...outcomeOf(limits, states, decidedAt), decidedBy: 'cache', matches: limits }
}

/** Answers a question without the store, or makes the limits for the store to decide. */
export function prepare(
  question: Question,
  parts: Pick<LimiterParts, 'nameSubject' | 'nameValues' | 'denialCache' | 'shield'>,
): Soon<Pending | Outcome> {
  const { matched, mode = 'take' } = question
  const { denialCache, shield } = parts
  const { policies: matches, shield: shieldKey } = matched
  const refusal = knownRefusal(matched, mode === 'take' ? denialCache : undefined)
  if (refusal) return refusal
  if (matches.length === 0) {
    return {
      decision: { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] },
      decidedBy: 'list',
    }
  }
  const holdsSlots = matches.some(({ terms }) => terms.algorithm === 'concurrency')
  const slot = holdsSlots ? (question.slot ?? crypto.randomUUID()) : undefined
  const isShielded =
    shield &&
    shieldKey &&
    mode === 'take' &&
    matches.some(({ terms, cost }) => terms.mode === 'enforce' && cost > 0)
  const pending = () =>
    whenKnown(limitsOf(matches, slot, parts), (known) => pendingOf(known, mode, slot, question))
  if (!isShielded) return pending()
  return shield(shieldKey).then((decision) =>
    decision ? { decision, decidedBy: 'shield' } : pending(),
  )
}

function pendingOf(
  limits: PolicyLimit[],
  mode: Pending['mode'],
  slot: string | undefined,
  { settlesAll, waitMs }: Question,
): Pending {
  const enforced: PolicyLimit[] = []
  let settles = false
  for (const limit of limits) {
    if (limit.terms.mode === 'enforce') enforced.push(limit)
    settles ||= limit.terms.settles
  }
  const requests: Pending['requests'] = enforced.length > 0 ? [{ mode, limits: enforced }] : []
  const follow = mode === 'take' && enforced.length > 0 ? 'follow' : mode
  for (const limit of limits)
    if (limit.terms.mode === 'shadow') requests.push({ mode: follow, limits: [limit] })
  const taken = mode === 'take' ? slot : undefined
  return { limits, requests, mode, slot: taken, settles, settlesAll, waitMs }
}

/** Answers the question of a request: at once if it needs no call. */
export function answer(question: Question, parts: LimiterParts, options: DecideOptions) {
  return whenKnown(prepare(question, parts), (prepared) => {
    if ('decision' in prepared) return prepared
    const deciding = decideList([prepared], parts, options).then(([outcome]) => outcome!)
    // Keeps the call alive if the client disconnects before the decision, so that its charge is settled. A caller may not await a `limit()`.
    if (prepared.settles || prepared.settlesAll) options.waitUntil?.(deciding)
    return deciding
  })
}

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
  const { startedAt = Date.now() } = options
  const prepared = await Promise.all(questions.map((question) => prepare(question, usedParts)))
  const pending = prepared.filter((one): one is Pending => 'limits' in one)
  const outcomes = await decideList(pending, parts, { ...options, startedAt })
  return prepared.map((one) => ('limits' in one ? outcomes[pending.indexOf(one)]! : one))
}

/** Decides prepared questions independently, in one call to the store. */
function decideList(pending: Pending[], parts: LimiterParts, options: DecideOptions) {
  if (pending.length === 0) return Promise.resolve([])
  const { waiting } = parts
  if (!waiting) return ask(pending, parts, options, [], ({ outcome }) => outcome)
  const waiters = pending.map((one, index) => waiting.enter(one, parts, options, index))
  return ask(pending, parts, options, waiters, (answer, index) => {
    const waiter = waiters[index]
    if (!waiter) return answer.outcome
    // Each time has an idempotency key of its own, so that a repeated call gets the same answers.
    const place = pending.length > 1 ? `${index}.` : ''
    const { idempotency, startedAt: _, ...own } = options
    return waiter.wait(answer, async (n) => {
      const keyed = idempotency && { ...idempotency, key: `${idempotency.key}~${place}${n}` }
      const again = keyed ? { ...own, idempotency: keyed } : own
      const [next] = await ask([pending[index]!], parts, again, [waiter], (one) => one)
      return next!
    })
  })
}

/** Asks the store about questions. The ticket of one that waits goes with its request that has the enforced limits. */
async function ask<Result>(
  pending: Pending[],
  { store, observer }: LimiterParts,
  options: DecideOptions,
  waiters: (WaitingRequest | undefined)[],
  resultOf: (answer: StoreAnswer, index: number) => Soon<Result>,
): Promise<Result[]> {
  const lists = pending.map(({ requests }, index) => {
    const ticket = waiters[index]?.ticket
    return ticket ? [{ ...requests[0]!, ticket }, ...requests.slice(1)] : requests
  })
  const meter = observer?.measure(pending.length)
  const deadlineMs = deadlineOf(pending, options)
  const { idempotency, waitUntil } = options
  const asked = { deadlineMs, fallback: true, idempotency, waitUntil, onCall: meter?.onCall }
  const replies = await store.decideEach(lists, asked)
  const use = meter?.stop()
  // Before any other one waits.
  for (const reply of replies) if (reply instanceof StoreError) throw reply
  const results = pending.map((one, index) => {
    const reply = replies[index] as StoreReply
    const outcome = conclude(one, reply)
    if (use) outcome.use = use
    return resultOf({ reply, outcome }, index)
  })
  return whenAllKnown(results)
}

/** The extra time for each limit if a call decides several questions, ms. */
const LIMIT_MS = 0.1

/** The deadline for the store: the shortest deadline of the policies, less the time that has passed, ms. */
function deadlineOf(pending: Pending[], { startedAt }: DecideOptions): number {
  const spentMs = startedAt === undefined ? 0 : Math.max(0, Date.now() - startedAt)
  let enforcedMs = Number.POSITIVE_INFINITY
  let shadowMs = Number.POSITIVE_INFINITY
  let count = 0
  for (const { limits } of pending) {
    count += limits.length
    for (const { terms } of limits) {
      if (terms.mode === 'enforce') enforcedMs = Math.min(enforcedMs, terms.deadlineMs)
      else shadowMs = Math.min(shadowMs, terms.deadlineMs)
    }
  }
  const wholeMs = enforcedMs < Number.POSITIVE_INFINITY ? enforcedMs : shadowMs // a shadow policy does not shorten the deadline
  // A key function and a body may wait for a slow client, which must still be counted. So the store gets at least half of the deadline.
  const leastMs =
    spentMs > wholeMs / 2 && pending.some(({ limits }) => limits.some(mayWait)) ? wholeMs / 2 : 1
  const listMs = pending.length > 1 ? count * LIMIT_MS : 0
  return Math.ceil(Math.max(leastMs, wholeMs - spentMs) + listMs)
}

const mayWait = ({ terms: { key, onMissingKey, plan, usesBody } }: Match) =>
  usesBody || contains([key, onMissingKey, plan], ({ source }) => source === 'function')
