import type { StoreState } from '../../src/core/connection/store.ts'
import { keyOf, type ModelLimit, type ModelPolicy, recordOf } from '../model/model.ts'
import type { Objects } from './objects.ts'
import { capacityOf, formatCalls, runOnOracle } from './run-on-oracle.ts'
import type { Schedule } from './schedules.ts'
import type { Server } from './server.ts'
import { newSubject } from './subjects.ts'

/** A state of the server after a schedule. */
export interface ReachedState {
  now: number
  policies: ModelPolicy[]
  subjects: string[]
  /** Every limit of every subject, at a cost of 1. */
  limits: ModelLimit[]
  keys: string[]
  story: string
}

/** Runs a schedule on the server. */
export async function reachState(server: Server, plan: Schedule): Promise<ReachedState> {
  const { calls, policies, subjects } = runOnOracle(plan)
  await Promise.all(calls.map(({ requests, now }) => server.decide(requests, now)))
  const limits = subjects.flatMap((subject) =>
    policies.map((policy) => ({ subject, terms: policy, cost: 1 })),
  )
  return {
    now: calls.at(-1)!.now,
    policies,
    subjects,
    limits,
    // Logs and slots have keys of their own, but their penalty is in the record.
    keys: [...new Set(limits.flatMap((row) => [keyOf(row), recordOf(row.subject)]))],
    story: formatCalls(calls),
  }
}

/** The state of one limit for its cost, without a charge. */
export async function peek(server: Server, row: ModelLimit, now: number): Promise<StoreState> {
  return (await server.decide([{ mode: 'peek', limits: [row] }], now)).states[0]![0]!
}

/**
 * True if a request of these limits would be admitted. The request is made on copies of the records, so the
 * records do not change.
 */
export async function wouldAdmit(
  server: Server,
  limits: ModelLimit[],
  now: number,
): Promise<boolean> {
  const copies = new Map<string, string>()
  const sent: Promise<unknown>[] = []
  const copiedLimits = limits.map((row) => {
    const copy = copies.get(row.subject) ?? newSubject()
    if (!copies.has(row.subject) && server.objects)
      sent.push(copyObject(server.objects, row.subject, copy))
    copies.set(row.subject, copy)
    const copied = { ...row, subject: copy }
    if (server.objects) return copied
    sent.push(server.send('COPY', keyOf(row), keyOf(copied)))
    sent.push(server.send('COPY', recordOf(row.subject), recordOf(copy)))
    return copied
  })
  if (server.objects) await Promise.all(sent) // Redis gets all commands in order
  const reply = server.decide([{ mode: 'take', limits: copiedLimits }], now)
  await Promise.all(sent)
  return (await reply).states[0]!.every(({ allowed }) => allowed)
}

const copyObject = async ({ call }: Objects, subject: string, copy: string) =>
  call('/load', copy, await call('/dump', subject))

/** Costs at the edges of a limit. */
export function costsAround(row: ModelLimit, { remaining }: StoreState): number[] {
  const capacity = capacityOf(row.terms)
  return [...new Set([1, remaining + 1, Math.ceil(capacity / 2), capacity])].filter(
    (cost) => cost > 0 && cost <= capacity,
  )
}

/** The script accepts times up to 2^51 ms. Tests cannot check a promise for a later time. */
export const isReachable = (time: number) => time <= 2 ** 51

/** Runs a probe for each limit concurrently. A probe must not change the state. */
export async function each(limits: ModelLimit[], probe: (row: ModelLimit) => Promise<void>) {
  await Promise.all(limits.map(probe))
}
