import type { Decision } from './decision.ts'
import { type Describe, type Description, type Descriptor, isMet } from './descriptor.ts'
import { StoreError } from './errors.ts'
import type { Policy } from './policy.ts'
import { type Proofs, proofKey } from './proofs.ts'
import { limitState, longestWait, type Row, rowOf } from './row.ts'
import type { Seen } from './seen.ts'
import { type Charge, isOpen } from './settle.ts'
import type {
  Once,
  RowState,
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
} from './store/store.ts'
import type { NameSubject, Part } from './subject.ts'
import { type Instead, withoutStore } from './without-store.ts'

/** What a limiter reaches the outside through. */
export interface LimiterParts {
  store: Store
  /** Answers for policies with `onStoreError: 'local'` when the store does not. */
  local: Store
  nameSubject: NameSubject
  /** Refusals that need no asking; absent where all are to be asked. */
  proofs?: Proofs | undefined
  /** The refusal of the first layer, if it has one; absent where there is no such layer. */
  shield?: ((key: Part[]) => Promise<Decision | undefined>) | undefined
  /** Told of every decision that the store could not make. */
  onStoreError: (error: StoreError) => void
}

/** What is to be decided. */
export interface Question {
  description: Description
  /** Defaults to `take`. */
  mode?: 'take' | 'look'
  /** The id under which slots are held; by default one that nobody else has. */
  slot?: string
}

/** A decision, and what of its charge waits for the answer. */
export interface Outcome {
  decision: Decision
  charge?: Charge
  /** Whether it is the answer to an earlier call with the same `once`. */
  replayed?: true
}

export interface DecideOptions {
  /** What has gone by of the deadline, in ms. Defaults to 0. */
  spentMs?: number
  /** Makes of this and later calls under the same key one. */
  once?: Once
  /** Keeps the isolate at work: one decision may then share its call with those of other requests. */
  waitUntil?: Seen['waitUntil']
  /** Told right before the store is asked: about which policies. */
  asking?: ((policies: Policy[]) => void) | undefined
}

/** Makes `decide`: which policies a request meets, whose quotas, one call to the store. Never throws for what a store does. */
export function createLimiter(
  describe: Describe,
): (seen: Seen, parts: LimiterParts, asking?: DecideOptions['asking']) => Promise<Outcome> {
  return async (seen, parts, asking) => {
    const start = Date.now()
    const description = await describe(seen)
    const spentMs = Math.max(0, Date.now() - start)
    const { waitUntil } = seen
    const [outcome] = await decideEach([{ description }], parts, { spentMs, waitUntil, asking })
    return outcome!
  }
}

/**
 * Decides several requests, each by itself, in one round trip.
 * @throws {StoreError} `once-conflict` only: for what a store does there is `onStoreError`
 */
export async function decideEach(
  questions: Question[],
  parts: LimiterParts,
  options: DecideOptions = {},
): Promise<Outcome[]> {
  // A repeated call has had its answer already.
  const near = options.once ? { ...parts, proofs: undefined, shield: undefined } : parts
  const begun = Date.now()
  const asked = await Promise.all(questions.map((question) => ask(question, near)))
  const open = asked.filter((one): one is Asked => 'rows' in one)
  const sentAt = Date.now()
  const spentMs = (options.spentMs ?? 0) + Math.max(0, sentAt - begun)
  const replies = await answers(open, parts, { ...options, spentMs })
  const receivedAt = Date.now()
  const outcomes = open.map((one, index) => {
    const { key } = one
    const keep: Keep = (answer) => {
      if (key !== undefined) near.proofs!.keep(key, one.rows, answer, sentAt, receivedAt)
    }
    return concluded(one, replies[index]!, parts, keep)
  })
  const decided = await Promise.all(outcomes)
  return asked.map((one) => ('rows' in one ? decided[open.indexOf(one)]! : one))
}

/** What the store is to be asked for one request. */
interface Asked {
  rows: Row[]
  requests: (StoreRequest & { rows: Row[] })[]
  slot: string | undefined
  /** Under which its refusal is kept; absent where it is not. */
  key: string | undefined
}

/** Keeps a refusal as the store told it. */
type Keep = (answer: { at: number; rows: RowState[] }) => void

async function ask(
  { description: { denied, policies, shield: shielded }, mode = 'take', slot: ownSlot }: Question,
  { nameSubject, proofs, shield }: LimiterParts,
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
  const key = proofs && mode === 'take' ? proofKey(descriptors) : undefined
  const proven = key !== undefined && proofs!.find(key, Date.now())
  if (proven) return { decision: decisionOf(descriptors, proven.rows, proven.at) }
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
  return { rows, requests, slot: mode === 'take' ? slot : undefined, key }
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
  // Half is the store's in any case: a key function may wait for the client, and whoever is slow must not go uncounted for it.
  const deadlineMs = Math.ceil(Math.max(wholeMs / 2, wholeMs - spentMs))
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
    return asked.map(() => ({ reply: named(error), instead: undefined }))
  }
}

const modeOf = ({ requests: [first] }: Asked) => (first!.mode === 'look' ? 'look' : 'take')

const named = (error: unknown) =>
  error instanceof StoreError ? error : new StoreError('internal', (error as Error)?.name)

async function concluded(
  asked: Asked,
  { reply, instead }: Answer,
  { local, onStoreError }: LimiterParts,
  keep: Keep,
): Promise<Outcome> {
  if (!(reply instanceof StoreError)) return outcomeOf(asked, reply, instead, onStoreError, keep)
  if (reply.code === 'once-conflict') throw reply
  onStoreError(reply)
  const decided = await withoutStore(asked.rows, modeOf(asked), local)
  return { decision: { reason: 'store-error', limits: [], ...decided } }
}

function outcomeOf(
  { rows: all, requests, slot }: Asked,
  reply: StoreReply,
  instead: Instead | undefined,
  onStoreError: LimiterParts['onStoreError'],
  keep: Keep,
): Outcome {
  const every = statesOf(all, requests, reply)
  const errors = every.flatMap(({ unanswered }) => unanswered ?? [])
  for (const error of new Set(errors)) onStoreError(error)
  const isAnswered = (_: unknown, index: number) => !every[index]!.unanswered
  const [rows, states] =
    errors.length === 0 ? [all, every] : [all.filter(isAnswered), every.filter(isAnswered)]
  const told = decisionOf(rows, states, reply.now)
  const decision = errors.length === 0 ? told : inPart(told, instead)
  const replayed = reply.replayed && { replayed: true as const }
  if (!decision.allowed) {
    if (errors.length === 0 && !reply.leased) keep({ at: reply.now, rows: states })
    return { decision, ...replayed }
  }
  const open = rows.flatMap((row, index) => {
    const { allowed, at = reply.now } = states[index]!
    return isOpen(row) && row.cost > 0 && allowed ? [{ ...row, receipt: at }] : []
  })
  return {
    decision: slot ? { ...decision, slot } : decision,
    ...(open.length > 0 && { charge: { rows: open } }),
    ...replayed,
  }
}

/** What some databases decided, and for the others `instead`. Without a time: what has one may be given back, and not all was taken. */
const inPart = ({ at, ...told }: Decision, instead: Instead | undefined): Decision =>
  instead ? { ...told, reason: 'store-error', ...instead } : told

/** The rows of a reply in the order of the policies: the requests have the enforced ones first. */
function statesOf(rows: Row[], requests: Asked['requests'], reply: StoreReply): RowState[] {
  const states = new Map(
    requests.flatMap(({ rows }, g) => rows.map((row, r) => [row, reply.requests[g]![r]!] as const)),
  )
  return rows.map((row) => states.get(row)!)
}

function decisionOf(descriptors: Descriptor[], states: RowState[], at: number): Decision {
  const limits = descriptors.map((one, index) => limitState(one, states[index]!))
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
