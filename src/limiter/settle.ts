/** The step `settle`: once the origin has answered, a charge is kept, refunded in part or refunded whole; slots are released. */
import type { Refund, Store, StoreOptions } from '../store/store.ts'
import type { PolicyLimit } from './limit.ts'

/**
 * The limits that were charged, each with the time of its charge by the clock of its store, ms since the epoch. A refund names it, so that
 * units that have run out since are not credited.
 */
export type Charged = Map<PolicyLimit, number>

/** Limits of a request that may get a refund. */
export interface Charge {
  limits: PolicyLimit[]
  /** A promise for a call whose reply is late. */
  charged: Charged | Promise<Charged>
  /** Counts them. */
  store: Store
}

/** Whether the charge of a limit depends on the response: by its status, by a price in it, or by a slot. */
export const isOpen = ({ policy }: Pick<PolicyLimit, 'policy'>): boolean =>
  policy.countOnly !== undefined ||
  policy.cost.response !== undefined ||
  policy.algorithm === 'concurrency'

/** Whether a charge has slots, which are held until the answer's body has ended. */
export const holdsSlots = ({ limits }: Charge): boolean =>
  limits.some(({ policy }) => policy.algorithm === 'concurrency')

/** No request waits for a refund. One that fails is lost until the units run out. */
const DEADLINE_MS = 5_000

/**
 * Refunds, in one call, what an answer does not count, and releases the slots.
 * @param answer absent for a request that was refused: everything goes back
 */
export async function settle(
  { limits, charged, store }: Charge,
  answer: Pick<Response, 'status' | 'headers'> | undefined,
  waitUntil?: StoreOptions['waitUntil'],
): Promise<void> {
  const times = await charged
  // Each in a request of its own: a refund of one policy does not depend on another's.
  const requests = limits.flatMap((limit): Refund | [] => {
    const decidedAt = times.get(limit)
    const cost = limit.cost - (answer ? due(limit, answer) : 0)
    if (decidedAt === undefined || cost <= 0) return []
    return { mode: 'refund', limits: [{ ...limit, cost }], decidedAt }
  })
  if (requests.length === 0) return
  await store.decide(requests, { deadlineMs: DEADLINE_MS, ...(waitUntil && { waitUntil }) })
}

/** The units of a charge that an answer makes good. */
function due(
  { policy, cost }: PolicyLimit,
  { status, headers }: Pick<Response, 'status' | 'headers'>,
): number {
  if (policy.algorithm === 'concurrency') return 0 // over, whatever came of it
  const { countOnly } = policy
  if (countOnly && !countOnly.some(([low, high]) => low <= status && status <= high)) return 0
  const said = policy.cost.response && headers.get(policy.cost.response)
  // What was taken is the most that can be asked: a price above it could no longer be refused.
  return said && /^\d{1,15}$/.test(said) ? Math.min(cost, Number(said)) : cost
}
