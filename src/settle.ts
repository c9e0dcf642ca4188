/** What becomes of a charge once the origin has answered: kept, given back in part, or given back whole. */
import type { Row } from './row.ts'
import type { Store, StoreOptions, StoreRequest } from './store/store.ts'

/** What a request was charged, and when. */
export interface Charge {
  /** `receipt`: the time of the decision by the clock of its database. What has run out since is not given back twice. */
  rows: (Row & { receipt: number })[]
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

/** Gives back, in one call, what an answer does not count, and the slots. */
export async function settle(
  { rows }: Charge,
  answer: Pick<Response, 'status' | 'headers'>,
  store: Store,
  waitUntil: NonNullable<StoreOptions['waitUntil']>,
): Promise<void> {
  const owed = rows
    .map((row) => ({ ...row, cost: row.cost - due(row, answer) }))
    .filter(({ cost }) => cost > 0)
  if (owed.length === 0) return
  // Each by itself: what one policy gets back is no matter of another.
  const requests = owed.map(
    ({ receipt, ...row }): StoreRequest => ({ mode: 'give-back', rows: [row], receipt }),
  )
  await store.decide(requests, { deadlineMs: DEADLINE_MS, waitUntil })
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
