import type { StoreReply, StoreState } from '../../src/core/connection/store.ts'
import {
  Model,
  type ModelKey,
  type ModelLimit,
  type ModelPolicy,
  type ModelRequest,
} from '../model/model.ts'
import { completeLimit } from './complete-limit.ts'
import type { Ask, Cost, Schedule, Wait } from './schedules.ts'
import { newSubject } from './subjects.ts'

export interface Call {
  now: number
  requests: ModelRequest[]
}

export interface OracleRun {
  calls: Call[]
  /** The oracle's reply to each call. */
  replies: StoreReply[]
  /** The state of the oracle after each call. */
  stored: Map<string, ModelKey>[]
  /** The policies after the last change. */
  policies: ModelPolicy[]
  subjects: string[]
}

/** Runs a schedule on the oracle, and resolves its relative waits and costs to numbers. */
export function runOnOracle(
  { start, policies: first, plans, steps }: Schedule,
  model = new Model(),
): OracleRun {
  const subjects: string[] = []
  const policies = [...first]
  const calls: Call[] = []
  const replies: StoreReply[] = []
  const stored: OracleRun['stored'] = []
  let now = start

  for (const { wait, forward, skew, change, requests } of steps) {
    const before = replies.at(-1)?.states.at(-1)?.at(-1)
    const ms = waitMs(wait, policies[0]!, before)
    now = clamp(now + (forward ? Math.max(0, ms) : ms))
    if (change) {
      const { policy, ...terms } = change
      policies[policy] = { ...policies[policy]!, ...terms }
    }
    const edge = clamp(now + skew)
    const call = { now, requests: requests.map((ask) => toRequest(ask, edge)) }
    calls.push(call)
    replies.push(model.decide(call.requests, now))
    stored.push(new Map(model.keys))
  }
  return { calls, replies, policies, subjects: Object.values(subjects), stored }

  function toRequest(ask: Ask, edge: number): ModelRequest {
    const { mode, limits, decidedAt, eighths } = ask
    const distinct = new Map<string, ModelLimit>()
    for (const { policy: index, plan, subject: number, cost, slot, floor: eighths } of limits) {
      subjects[number] ??= newSubject()
      const policy = { ...policies[index]!, ...plans[index]?.[plan - 1] }
      const slots = policy.algorithm === 'concurrency' && { slot: `slot${slot}` }
      // As in the oracle: a product of doubles is not exact above 2^53.
      const floor = Number((BigInt(capacityOf(policy)) * BigInt(eighths) + 7n) / 8n)
      const row = completeLimit(
        {
          subject: subjects[number],
          terms: policy,
          cost: 0,
          ...(floor && { floor }),
          ...slots,
          ...(ask.overrides && { override: { share: eighths / 8, scalesBurst: index % 2 === 0 } }),
        },
        edge,
      )
      row.cost = costUnits(cost, row)
      if (policy.algorithm === 'distinct') {
        const length = Math.max(1, Math.min(row.cost, 1 + (slot % 3)))
        row.values = Array.from({ length }, (_, n) => `value${(slot + n) % 5}`)
      }
      // The entries of a debt make a log as long as the debt, so long logs are left to the tests of debts.
      if (mode === 'debt' && policy.algorithm === 'sliding-log') {
        row.cost = Math.min(row.cost, capacityOf(policy) + 2)
      }
      distinct.set(`${number} ${index}`, row)
    }
    if (mode === 'debt') {
      const owing = [...distinct.values()].filter(
        ({ terms }) => terms.algorithm !== 'concurrency' && terms.algorithm !== 'distinct',
      )
      return owing.length > 0
        ? { mode, limits: owing }
        : { mode: 'peek', limits: [...distinct.values()] }
    }
    if (mode === 'override') {
      const rows = [...distinct.values()]
      const units = Math.min(ask.units, ...rows.map(({ terms }) => mostUnits(terms)))
      const { windowMs } = rows[0]!.terms
      const forMs = clamp(1 + Math.floor((windowMs * eighths) / 4))
      return { mode, limits: rows, units, forMs: Math.min(forMs, 2 ** 51 - 1) }
    }
    const most = [...distinct.values()].flatMap(({ penalty }) => penalty?.maxMs ?? [])
    if (mode === 'ban' && most.length === 0) return { mode: 'peek', limits: [...distinct.values()] }
    const banMs = Math.max(1, Math.floor((Math.min(...most) * eighths) / 8))
    const time = decidedAt === null ? undefined : replies.at(-1 - decidedAt)?.decidedAt
    return {
      mode,
      limits: [...distinct.values()],
      ...(mode === 'ban' && { banMs }),
      ...(mode === 'refund' && time !== undefined && { decidedAt: time }),
    }
  }

  function costUnits(cost: Cost, row: ModelLimit): number {
    if ('units' in cost) return cost.units
    const { remaining } = model.decide([{ mode: 'peek', limits: [row] }], now).states[0]![0]!
    const capacity = capacityOf(row.terms)
    const base = { remaining, capacity, half: Math.floor(capacity / 2) }[cost.of]
    return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, base + cost.plus))
  }
}

/** Limits a time to the range that the script accepts. */
const clamp = (value: number) => Math.min(2 ** 51, Math.max(0, value))

function waitMs(wait: Wait, { windowMs }: ModelPolicy, before: StoreState | undefined): number {
  if ('ms' in wait) return wait.ms
  if ('eighths' in wait) return Math.floor((windowMs * wait.eighths) / 8) + wait.plus
  return (before?.[wait.until] ?? 0) + wait.plus
}

/** The largest cost that can ever be admitted. */
export const capacityOf = ({ algorithm, limit, burst }: ModelPolicy) =>
  algorithm === 'token-bucket' ? burst : limit

/** The largest limit that the script accepts for the terms. */
function mostUnits({ algorithm, windowMs, lengths = [] }: ModelPolicy): number {
  if (algorithm === 'fixed-window') return Number.MAX_SAFE_INTEGER
  const most = Math.min(2 ** 51, Math.floor(2 ** 53 / 3 / Math.max(windowMs, ...lengths)))
  return algorithm === 'sliding-log'
    ? Math.min(1000, most)
    : algorithm === 'concurrency' || algorithm === 'distinct'
      ? Math.min(100, most)
      : most
}

/** Formats calls as lines, for a readable counter-example. */
export const formatCalls = (calls: Call[]) => calls.map(line).join('')

/** Caches lines, because laws format all calls again after each call. */
const lines = new WeakMap<Call, string>()

function line(call: Call): string {
  const known = lines.get(call)
  if (known !== undefined) return known
  const requests = call.requests.map(({ mode, limits, decidedAt, banMs, units, forMs }) => {
    const parts = limits.map(({ subject, terms: policy, cost, ...rest }) => {
      const { tag, algorithm, limit, windowMs, burst, align } = policy
      return `${cost} of ${subject}/${tag} (${algorithm} ${limit} per ${windowMs} burst ${burst} ${align}) ${JSON.stringify(rest)}`
    })
    const length = banMs === undefined ? '' : ` for ${banMs}`
    const size = units === undefined ? '' : ` to ${units} for ${forMs}`
    return `${mode}${length}${size}${decidedAt === undefined ? '' : ` against ${decidedAt}`} ${parts.join(' and ')}`
  })
  const text = `\n  at ${call.now}: ${requests.join('; ')}`
  lines.set(call, text)
  return text
}
