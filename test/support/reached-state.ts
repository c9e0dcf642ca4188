import type { StoreState } from '../../src/store/store.ts'
import { keyOf, type ModelLimit, type ModelPolicy, recordOf } from '../model/model.ts'
import { capacityOf, formatCalls, runOnOracle } from './run-on-oracle.ts'
import type { Schedule } from './schedules.ts'
import type { Server } from './server.ts'
import { newSubject } from './subjects.ts'

/** A state that a schedule has led to. */
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
    // A penalty stands in the record beside a log, or slots.
    keys: [...new Set(limits.flatMap((row) => [keyOf(row), recordOf(row.subject)]))],
    story: formatCalls(calls),
  }
}

/** How one limit stands for a cost. */
export async function peek(server: Server, row: ModelLimit, now: number): Promise<StoreState> {
  return (await server.decide([{ mode: 'peek', limits: [row] }], now)).states[0]![0]!
}

/**
 * Whether a request of these limits would be admitted: it is made, on copies of the records, so that
 * what follows finds everything as it was.
 */
export async function wouldAdmit(
  server: Server,
  limits: ModelLimit[],
  now: number,
): Promise<boolean> {
  const copies = new Map<string, string>()
  const sent: Promise<unknown>[] = []
  const moved = limits.map((row) => {
    const copy = copies.get(row.subject) ?? newSubject()
    copies.set(row.subject, copy)
    const there = { ...row, subject: copy }
    sent.push(server.send('COPY', keyOf(row), keyOf(there)))
    sent.push(server.send('COPY', recordOf(row.subject), recordOf(copy)))
    return there
  })
  const reply = server.decide([{ mode: 'take', limits: moved }], now)
  await Promise.all(sent)
  return (await reply).states[0]!.every(({ allowed }) => allowed)
}

/** The costs around which something may go wrong. */
export function costsAround(row: ModelLimit, { remaining }: StoreState): number[] {
  const capacity = capacityOf(row.terms)
  return [...new Set([1, remaining, remaining + 1, Math.ceil(capacity / 2), capacity])].filter(
    (cost) => cost > 0 && cost <= capacity,
  )
}

/** The contract ends at 2^51 ms: what is promised for later cannot be tried. */
export const isReachable = (time: number) => time <= 2 ** 51

/** All limits of a settled state, side by side: no probe changes what another sees. */
export async function each(limits: ModelLimit[], probe: (row: ModelLimit) => Promise<void>) {
  await Promise.all(limits.map(probe))
}
