/** The operations on limits. Each throws the `StoreError` of a store that does not answer. Also the probe of the database for health checks. */
import type { LimitState, LimitStatus } from '../base/decision.ts'
import { StoreError } from '../base/errors.ts'
import type { Part } from '../base/part.ts'
import type { Idempotency, StoreReply, StoreRequest, Terms } from '../connection/store.ts'
import type { ScriptPart } from '../connection/upstash/part.ts'
import { operators } from '../connection/upstash/script-text.ts'
import { limitStates, limitsOf, type PolicyLimit } from './limit.ts'
import type { Match } from './matched.ts'
import type { Database, LimiterParts, Question } from './question.ts'
import {
  type Charges,
  correctionsOf,
  type Kept,
  type PolicyRequest,
  tellIsolate,
} from './settle.ts'
import type { NameSubject } from './subject.ts'

/** The part of the general script that operations need, apart from peeks. */
export const operations: ScriptPart = { text: operators }

/** The deadline of these calls, ms. It is long because no client's request waits for them. */
const DEADLINE_MS = 5_000

interface OperateOptions {
  idempotency?: Idempotency | undefined
  waitUntil: (promise: Promise<unknown>) => void
}

export interface Statuses {
  statuses: LimitStatus[]
  replayed: boolean
}

export interface RefundQuestion extends Pick<Question, 'matched' | 'slot'> {
  /** When the units were charged, ms since the epoch. */
  decidedAt?: number | undefined
}

/** Refunds the units of each policy independently, and releases slots by their id. */
export async function refund(
  questions: RefundQuestion[],
  parts: LimiterParts,
  options: OperateOptions,
): Promise<Statuses> {
  const lists = await Promise.all(
    questions.map(async ({ matched, slot, decidedAt }) => {
      const limits = await limitsOf(matched.policies, slot, parts)
      return { limits, requests: limits.map((limit) => refundOf(limit, decidedAt)) }
    }),
  )
  return statusesAfter(lists, parts, options)
}

/** The part of a decision that its charges are settled by. */
export interface SettledDecision {
  decidedAt: number
  slot?: string | undefined
  limits: (Pick<LimitState, 'policy' | 'allowed' | 'cost'> & { decidedAt?: number | undefined })[]
}

/** A charge with what was used of it in the end. */
export interface SettleQuestion extends Pick<Question, 'matched'> {
  /** The units that each limit keeps. Defaults to the charge. */
  used?: number | undefined
  decision: SettledDecision
}

/** Returns or charges the rest of what decisions have charged, and releases their slots. The statuses have the limits that change. */
export async function settleEach(
  questions: SettleQuestion[],
  parts: LimiterParts,
  options: OperateOptions,
): Promise<Statuses> {
  const lists = await Promise.all(
    questions.map(async ({ matched, used, decision: { decidedAt, slot, limits } }) => {
      const charges: Charges = new Map()
      const kept: Kept = new Map()
      const states = [...limits]
      let state: (typeof limits)[0] | undefined
      for (const limit of await limitsOf(matched.policies, slot, parts)) {
        const { name } = limit.terms
        const next = states.findIndex(({ policy }) => policy === name)
        if (next >= 0) [state] = states.splice(next, 1) // else it shares the state of the one before
        if (state?.policy !== name || !state.allowed) continue
        const charged = { ...limit, cost: state.cost }
        charges.set(charged, { decidedAt: state.decidedAt ?? decidedAt })
        if (used !== undefined) kept.set(charged, used)
      }
      const requests = correctionsOf(charges, undefined, kept)
      return { limits: requests.flatMap(({ limits }) => limits), requests }
    }),
  )
  return statusesAfter(lists, parts, options)
}

function refundOf(limit: PolicyLimit, decidedAt: number | undefined): PolicyRequest {
  if (limit.terms.algorithm === 'concurrency') {
    // Slots cannot be released without their id. All slots of an id are released together, whatever the cost.
    if (limit.slot === undefined) return { mode: 'peek', limits: [limit] }
    return { mode: 'refund', limits: [{ ...limit, cost: Math.max(1, limit.cost) }] }
  }
  return { mode: 'refund', limits: [limit], ...(decidedAt !== undefined && { decidedAt }) }
}

/** An operation on the quotas of one key. */
export type Operation =
  | { mode: 'peek' | 'reset' | 'unban' }
  | { mode: 'ban'; banMs: number }
  | Resizing

/** Sets or removes the limit of one key. */
export type Resizing = { mode: 'override'; units: number; forMs: number } | { mode: 'restore' }

export async function operate(
  operation: Operation,
  matches: Match[],
  parts: LimiterParts,
  options: OperateOptions,
): Promise<LimitStatus> {
  const limits = await limitsOf(matches, undefined, parts)
  const list = { limits, requests: [{ ...operation, limits }] }
  return (await statusesAfter([list], parts, options)).statuses[0]!
}

/** The health of the database. */
export interface DatabaseReport {
  status: 'ok' | 'failing'
  code?: string
  roundTripMs?: number
}

/**
 * Measures the round trip to the database, by a peek at a quota that no client uses.
 * @returns the health, and the time of the database minus that of this isolate, ms, which is exact to the round trip
 */
export async function probe(
  { store, health }: Database,
  nameSubject: NameSubject,
  part: Part,
): Promise<{ database: DatabaseReport; clockOffsetMs?: number }> {
  const subject = await nameSubject([part])
  const startedAt = Date.now()
  try {
    const peek: StoreRequest = { mode: 'peek', limits: [{ subject, terms: PROBE, cost: 0 }] }
    const { decidedAt } = await store.decide([peek], { deadlineMs: DEADLINE_MS })
    const roundTripMs = Date.now() - startedAt
    const clockOffsetMs = Math.round(decidedAt - startedAt - roundTripMs / 2)
    return { database: { status: 'ok', roundTripMs }, clockOffsetMs }
  } catch (error) {
    const { code = 'internal' } = error as { code?: string }
    return { database: { status: 'failing', code: health().failure ?? code } }
  }
}

export const PROBE: Terms = {
  tag: 'probe',
  algorithm: 'fixed-window',
  limit: 1,
  windowMs: 1000,
  burst: 1,
  align: 'first-request',
  localShare: 1,
}

/** Sends the lists in one call, and returns the limit states of each list. */
async function statusesAfter(
  lists: { limits: PolicyLimit[]; requests: PolicyRequest[] }[],
  { store, denialCache, onStoreError, waiting }: LimiterParts,
  { idempotency, waitUntil }: OperateOptions,
): Promise<Statuses> {
  const sent = lists.filter(({ requests }) => requests.length > 0)
  if (sent.length === 0) return { statuses: lists.map(() => ({ limits: [] })), replayed: false }
  const calling = store
    .decideEach(
      sent.map(({ requests }) => requests),
      { deadlineMs: DEADLINE_MS, waitUntil, idempotency },
    )
    .finally(() => {
      for (const { requests } of sent) tellIsolate(requests, { denialCache, waiting })
    })
  waitUntil(calling) // finishes even if the caller disconnects
  const replies = await calling
  const failed = replies.find((reply) => reply instanceof StoreError)
  if (failed) {
    if (failed.code !== 'idempotency-conflict') onStoreError(failed)
    throw failed
  }
  const answered = replies as StoreReply[]
  const statuses = lists.map((list): LimitStatus => {
    const reply = answered[sent.indexOf(list)]
    if (!reply) return { limits: [] }
    return { decidedAt: reply.decidedAt, limits: limitStates(list.limits, reply.states.flat()) }
  })
  return { statuses, replayed: answered.some(({ replayed }) => replayed) }
}
