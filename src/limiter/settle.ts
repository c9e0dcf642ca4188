/** What becomes of a charge once the origin has answered: kept, given back in part, or given back whole. */

import type { Store, StoreOptions, StoreRequest } from '../store/store.ts'
import type { Row } from './limit.ts'

/**
 * The rows that were charged, each with the time of its charge by the clock of its database, ms since the epoch. A refund names it, so that
 * what has run out since is not given back twice.
 */
export type Charged = Map<Row, number>

/** Rows of a request that may get something back. */
export interface Charge {
  rows: Row[]
  /** A promise for a call whose reply is late. */
  charged: Charged | Promise<Charged>
  /** Counts them. */
  store: Store
}

/** Whether something of a charge waits for the answer: an outcome, a price, or a slot. */
export const isOpen = ({ policy }: Pick<Row, 'policy'>): boolean =>
  policy.countOnly !== undefined ||
  policy.cost.response !== undefined ||
  policy.algorithm === 'concurrency'

/** Whether a charge has slots, which are held until the answer's body has ended. */
export const holdsSlots = ({ rows }: Charge): boolean =>
  rows.some(({ policy }) => policy.algorithm === 'concurrency')

/** Nobody waits for it, and what does not come is lost until it runs out. */
const DEADLINE_MS = 5_000

/**
 * Refunds, in one call, what an answer does not count, and releases the slots.
 * @param answer absent for a request that was refused: everything goes back
 */
export async function settle(
  { rows, charged, store }: Charge,
  answer: Pick<Response, 'status' | 'headers'> | undefined,
  waitUntil?: StoreOptions['waitUntil'],
): Promise<void> {
  const receipts = await charged
  // Each in a request of its own: a refund of one policy does not depend on another's.
  const requests = rows.flatMap((row): StoreRequest | [] => {
    const receipt = receipts.get(row)
    const cost = row.cost - (answer ? due(row, answer) : 0)
    if (receipt === undefined || cost <= 0) return []
    return { mode: 'refund', rows: [{ ...row, cost }], receipt }
  })
  if (requests.length === 0) return
  await store.decide(requests, { deadlineMs: DEADLINE_MS, ...(waitUntil && { waitUntil }) })
}

/** The units of a charge that an answer makes good. */
function due(
  { policy, cost }: Row,
  { status, headers }: Pick<Response, 'status' | 'headers'>,
): number {
  if (policy.algorithm === 'concurrency') return 0 // over, whatever came of it
  const { countOnly } = policy
  if (countOnly && !countOnly.some(([low, high]) => low <= status && status <= high)) return 0
  const said = policy.cost.response && headers.get(policy.cost.response)
  // What was taken is the most that can be asked: a price above it could no longer be refused.
  return said && /^\d{1,15}$/.test(said) ? Math.min(cost, Number(said)) : cost
}
