import type { Decision } from '../base/decision.ts'
import { asStoreError, StoreError } from '../base/errors.ts'
import type { Policy } from '../config/parse.ts'
import { type Describe, type Description, type Descriptor, isMet } from '../match/match.ts'
import type { NameSubject, Part } from '../match/subject.ts'
import type { RequestView } from '../request/view.ts'
import { NOT_SENT } from '../store/batching.ts'
import type { LocalStore } from '../store/local/local.ts'
import type {
  Idempotency,
  RowState,
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
} from '../store/store.ts'
import type { DenialCache } from './denial-cache.ts'
import { type Instead, withoutStore } from './fallback.ts'
import { limitStates, longestWait, type Row, rowOf } from './limit.ts'
import { type Charge, type Charged, isOpen, settle } from './settle.ts'

/** What a limiter reaches the outside through. */
export interface LimiterParts {
  store: Store
  /** Answers for policies with `onStoreError: 'local'` when the store does not. */
  local: LocalStore
  nameSubject: NameSubject
  /** Absent where every decision asks the store. */
  denialCache?: DenialCache | undefined
  /** The refusal of the first layer, if it has one; absent where there is no such layer. */
  shield?: ((key: Part[]) => Promise<Decision | undefined>) | undefined
  /** Told of every decision that the store could not make. */
  onStoreError: (error: StoreError) => void
}

/** What is to be decided. */
export interface Question {
  description: Description
  /** Defaults to `take`. */
  mode?: 'take' | 'peek'
  /** The id under which slots are held; by default one that nobody else has. */
  slot?: string
}

/** A decision, and what of its charges waits for the answer. */
export interface Outcome {
  decision: Decision
  charges?: Charge[]
  /** Whether it is the answer to an earlier call with the same `once`. */
  replayed?: true
}

export interface DecideOptions {
  /** What has gone by of the deadline, in ms. Defaults to 0. */
  spentMs?: number
  /** Makes of this and later calls under the same key one. */
  once?: Idempotency
  /** Keeps the isolate at work: one decision may then share its call with those of other requests. */
  waitUntil?: RequestView['waitUntil']
  /** Told right before the store is asked: about which policies. */
  asking?: ((policies: Policy[]) => void) | undefined
}

/** Makes `decide`: which policies a request meets, whose quotas, one call to the store. Never throws for what a store does. */
export function createLimiter(
  describe: Describe,
): (view: RequestView, parts: LimiterParts, asking?: DecideOptions['asking']) => Promise<Outcome> {
  return async (view, parts, asking) => {
    const start = Date.now()
    const description = await describe(view)
    const spentMs = Math.max(0, Date.now() - start)
    const { waitUntil } = view
    const [outcome] = await decideEach([{ description }], parts, { spentMs, waitUntil, asking })
    return outcome!
  }
}

/**
 * Decides several requests, each by itself, in one round trip.
 * @throws {StoreError} `idempotency-conflict` only: for what a store does there is `onStoreError`
 */
export async function decideEach(
  questions: Question[],
  parts: LimiterParts,
  options: DecideOptions = {},
): Promise<Outcome[]> {
  // A repeated call has had its answer already.
  const near = options.once ? { ...parts, denialCache: undefined, shield: undefined } : parts
  const begun = Date.now()
  const asked = await Promise.all(questions.map((question) => ask(question, near)))
  const open = asked.filter((one): one is Asked => 'rows' in one)
  const sentAt = Date.now()
  const spentMs = (options.spentMs ?? 0) + Math.max(0, sentAt - begun)
  const replies = await answers(open, parts, { ...options, spentMs })
  const decided = await Promise.all(
    open.map((one, index) => concluded({ ...one, sentAt }, replies[index]!, near, options)),
  )
  return asked.map((one) => ('rows' in one ? decided[open.indexOf(one)]! : one))
}

/** What the store is to be asked for one request. */
interface Asked {
  rows: Row[]
  requests: (StoreRequest & { rows: Row[] })[]
  slot: string | undefined
}

async function ask(
  { description: { denied, policies, shield: shielded }, mode = 'take', slot: ownSlot }: Question,
  { nameSubject, denialCache, shield }: LimiterParts,
): Promise<Asked | Outcome> {
  if (denied) {
    return {
      decision: { allowed: false, reason: 'denied', denied, retryAfterMs: null, limits: [] },
    }
  }
  const descriptors = policies.filter(isMet)
  if (descriptors.length === 0) {
    return { decision: { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] } }
  }
  const denial = mode === 'take' ? denialCache?.find(descriptors, Date.now()) : undefined
  if (denial) return { decision: decisionOf(denial.limits, denial.states, denial.at) }
  if (shield && shielded && mode === 'take' && enforced(descriptors).some(({ cost }) => cost > 0)) {
    const decision = await shield(shielded)
    if (decision) return { decision }
  }
  const holds = descriptors.some(({ policy }) => policy.algorithm === 'concurrency')
  const slot = holds ? (ownSlot ?? crypto.randomUUID()) : undefined
  const rows: Row[] = []
  // One after the other: policies mostly count by the same key, whose name is known after the first.
  for (const one of descriptors) rows.push(await rowOf(one, slot, nameSubject))
  const enforcing = enforced(rows)
  // Each shadow policy by itself: it refuses for no other, and is charged only where the enforced ones let the request pass.
  const requests: Asked['requests'] = shadow(rows).map((row) => ({
    mode: mode === 'take' && enforcing.length > 0 ? 'shadow' : mode,
    rows: [row],
  }))
  if (enforcing.length > 0) requests.unshift({ mode, rows: enforcing })
  return { rows, requests, slot: mode === 'take' ? slot : undefined }
}

const enforced = <D extends Descriptor>(rows: D[]) =>
  rows.filter(({ policy }) => policy.mode === 'enforce')
const shadow = (rows: Row[]) => rows.filter(({ policy }) => policy.mode === 'shadow')

/** What the store says to a request, and who decided instead for limits whose database gave no answer. */
interface Answer {
  reply: StoreReply | StoreError
  instead: Instead | undefined
}

/** What the store says to each; errors are values. */
async function answers(
  asked: Asked[],
  { store, local }: LimiterParts,
  { spentMs = 0, asking, ...rest }: DecideOptions,
): Promise<Answer[]> {
  if (asked.length === 0) return []
  const rows = asked.flatMap(({ rows }) => rows)
  asking?.(rows.map(({ policy }) => policy))
  const enforcing = enforced(rows)
  const waiting = enforcing.length > 0 ? enforcing : rows // nobody waits less for a shadow's sake
  const wholeMs = Math.min(...waiting.map(({ policy }) => policy.deadlineMs))
  // A key function may wait for the client, and a slow client must not go uncounted: then the store has half of the deadline.
  const leastMs = spentMs > wholeMs / 2 && rows.some(hasKeyFunction) ? wholeMs / 2 : 1
  // A list takes longer than one request.
  const listMs = asked.length > 1 ? rows.length * ROW_MS : 0
  const deadlineMs = Math.ceil(Math.max(leastMs, wholeMs - spentMs) + listMs)
  const instead: Instead[] = []
  const unanswered: StoreOptions['unanswered'] = async (rows, index) => {
    instead[index] = await withoutStore(rows as Row[], modeOf(asked[index]!), local)
    return instead[index].allowed
  }
  const options = { ...rest, deadlineMs, unanswered }
  try {
    const replies =
      asked.length === 1
        ? [await store.decide(asked[0]!.requests, options)]
        : await store.decideEach(
            asked.map(({ requests }) => requests),
            options,
          )
    return replies.map((reply, index) => ({ reply, instead: instead[index] }))
  } catch (error) {
    return asked.map(() => ({ reply: asStoreError(error), instead: undefined }))
  }
}

/** The share of one limit of a list, ms. */
const ROW_MS = 0.1

const hasKeyFunction = ({ policy: { key, onMissingKey, plan } }: Row) =>
  [
    ...key,
    ...(typeof onMissingKey === 'object' ? onMissingKey.key : []),
    ...(plan ? [plan.key] : []),
  ].some(({ source }) => source === 'function')

const modeOf = ({ requests: [first] }: Asked) => (first!.mode === 'peek' ? 'peek' : 'take')

/** A request that the store has been asked about. */
interface Sent extends Asked {
  /** ms since the epoch */
  sentAt: number
}

async function concluded(
  sent: Sent,
  { reply, instead }: Answer,
  parts: LimiterParts,
  options: DecideOptions,
): Promise<Outcome> {
  if (!(reply instanceof StoreError)) return outcomeOf(sent, reply, instead, parts)
  if (reply.code === 'idempotency-conflict') throw reply
  parts.onStoreError(reply)
  const { charge, ...decided } = await withoutStore(sent.rows, modeOf(sent), parts.local)
  const decision: Decision = { reason: 'store-error', limits: [], ...decided }
  const late = chargedLate(sent, reply, parts)?.then((charged) => {
    // The store's charge stands for a request that was admitted here. What stands for none is refunded.
    const spare = [...charged.keys()].filter((row) => !parts.local.pays(row))
    return decided.allowed ? charged : new Map(spare.map((row) => [row, charged.get(row)!]))
  })
  const { rows, slot } = sent
  const { store } = parts
  if (decided.allowed) {
    const open = late ? [{ rows: rows.filter(isOpen), charged: late, store }] : []
    const charges = [...(charge ? [charge] : []), ...open.filter(({ rows }) => rows.length > 0)]
    return {
      decision: slot ? { ...decision, slot } : decision,
      ...(charges.length > 0 && { charges }),
    }
  }
  // A refusal costs nothing. But a call under an idempotency key may be repeated, and finds the answer it was charged for.
  if (late && !options.once) {
    const refunding = refundLate({ rows, charged: late, store }, parts, options)
    options.waitUntil?.(refunding)
  } else if (late) options.waitUntil?.(late)
  return { decision }
}

/** Refunds everything that a refused request was charged late. Never rejects. */
async function refundLate(
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
  const slots = new Map(sent.rows.flatMap((row) => (row.slot ? [[row, 0] as const] : [])))
  if (modeOf(sent) !== 'take' || !(error.late || (slots.size > 0 && mayHaveRun(error))))
    return undefined
  return Promise.resolve(error.late as Promise<StoreReply | StoreError> | undefined).then(
    (reply) => {
      if (reply && !(reply instanceof StoreError)) return learn(sent, reply, parts).charged
      return mayHaveRun(reply ?? error) ? slots : new Map()
    },
  )
}

const mayHaveRun = ({ code, cause }: StoreError) =>
  (code === 'timeout' || code === 'unreachable' || code === 'bad-reply') && cause !== NOT_SENT

/** Remembers what a reply says of each limit, and when each was charged. */
function learn(
  { rows, requests, sentAt }: Sent,
  reply: StoreReply,
  { denialCache, local }: LimiterParts,
) {
  const receivedAt = Date.now()
  const states = statesOf(rows, requests, reply)
  const isWhole = states.every(({ unanswered }) => !unanswered)
  const takes = requests.every(({ mode }) => mode !== 'peek')
  const passes = rows.every(
    ({ policy }, index) =>
      policy.mode === 'shadow' || states[index]!.allowed || states[index]!.unanswered,
  )
  if (takes && !passes && isWhole && !reply.leased) {
    denialCache?.keep(rows, states, reply.now, sentAt, receivedAt)
  }
  const charged: Charged = new Map()
  for (const [index, row] of rows.entries()) {
    const state = states[index]!
    const { onStoreError, mode } = row.policy
    if (state.unanswered) {
      if (row.slot && mayHaveRun(state.unanswered)) charged.set(row, 0)
      continue
    }
    // A replay says how the limit stood at the first call.
    if (onStoreError === 'local' && mode === 'enforce' && !reply.replayed)
      local.learn(row, state, state.at ?? reply.now, receivedAt)
    if (takes && passes && state.allowed && row.cost > 0) charged.set(row, state.at ?? reply.now)
  }
  return { states, charged }
}

function outcomeOf(
  sent: Sent,
  reply: StoreReply,
  instead: Instead | undefined,
  parts: LimiterParts,
): Outcome {
  const { rows: all, slot } = sent
  const { states: every, charged } = learn(sent, reply, parts)
  const errors = every.flatMap(({ unanswered }) => unanswered ?? [])
  for (const error of new Set(errors)) parts.onStoreError(error)
  const isAnswered = (_: unknown, index: number) => !every[index]!.unanswered
  const [rows, states] =
    errors.length === 0 ? [all, every] : [all.filter(isAnswered), every.filter(isAnswered)]
  const told = decisionOf(rows, states, reply.now)
  const decision = errors.length === 0 ? told : inPart(told, instead)
  const replayed = reply.replayed && { replayed: true as const }
  if (!decision.allowed) return { decision, ...replayed }
  const open = all.filter((row) => isOpen(row) && charged.has(row))
  const charges = instead?.charge ? [instead.charge] : []
  if (open.length > 0) charges.push({ rows: open, charged, store: parts.store })
  return {
    decision: slot ? { ...decision, slot } : decision,
    ...(charges.length > 0 && { charges }),
    ...replayed,
  }
}

/** What some databases decided, and for the others `instead`. Without a time: what has one may be given back, and not all was taken. */
function inPart({ at, ...told }: Decision, instead: Instead | undefined): Decision {
  if (!instead) return told
  const { charge, ...fallback } = instead
  return { ...told, reason: 'store-error', ...fallback }
}

/** The rows of a reply in the order of the policies: the requests have the enforced ones first. */
function statesOf(rows: Row[], requests: Asked['requests'], reply: StoreReply): RowState[] {
  const states = new Map(
    requests.flatMap(({ rows }, g) => rows.map((row, r) => [row, reply.requests[g]![r]!] as const)),
  )
  return rows.map((row) => states.get(row)!)
}

function decisionOf(descriptors: Descriptor[], states: RowState[], at: number): Decision {
  const limits = limitStates(descriptors, states)
  const deciding = limits.filter(({ mode }) => mode === 'enforce')
  const retryAfterMs = longestWait(deciding)
  const banned = deciding.some(({ bannedForMs }) => bannedForMs)
  return {
    allowed: retryAfterMs === 0,
    reason: retryAfterMs === 0 ? 'within-limit' : banned ? 'banned' : 'limited',
    retryAfterMs,
    limits,
    at,
  }
}
