/** The step `settle`: after the response, keeps each charge or refunds all or a part of it, and releases slots. */
import type { Refund, Store, StoreOptions } from '../store/store.ts'
import type { PolicyLimit } from './limit.ts'

/**
 * The charged limits, each with the time of its charge by the store's clock, ms since the epoch. A refund carries this time, so that
 * units that have expired since are not refunded.
 */
export type Charged = Map<PolicyLimit, number>

/** A charge that may be refunded. */
export interface Charge {
  limits: PolicyLimit[]
  /** A promise if the reply of the call is late. */
  charged: Charged | Promise<Charged>
  /** The store that counts the limits. */
  store: Store
}

/** True if the charge of a limit depends on the response: on its status, its price, or its end (slots). */
export const dependsOnResponse = ({ policy }: Pick<PolicyLimit, 'policy'>): boolean =>
  policy.countOnly !== undefined ||
  policy.cost.response !== undefined ||
  policy.algorithm === 'concurrency'

/** True if a charge has slots. They are released after the end of the response body. */
export const holdsSlots = ({ limits }: Charge): boolean =>
  limits.some(({ policy }) => policy.algorithm === 'concurrency')

/** The part of a response that charges are settled by. */
export type ResponseHead = Pick<Response, 'status' | 'headers'>

/** The deadline of a refund, ms. It is long because no request waits for it, and a failed refund blocks the units until they expire. */
const DEADLINE_MS = 5_000

/**
 * Refunds the units that a response does not count, and releases the slots, in one call.
 * @param response `undefined` for a refused request, which gets a full refund
 */
export async function settle(
  { limits, charged, store }: Charge,
  response: ResponseHead | undefined,
  waitUntil?: StoreOptions['waitUntil'],
): Promise<void> {
  const times = await charged
  // One request for each limit, so that the refunds do not depend on each other.
  const requests = limits.flatMap((limit): Refund | [] => {
    const decidedAt = times.get(limit)
    const cost = limit.cost - (response ? unitsKept(limit, response) : 0)
    if (decidedAt === undefined || cost <= 0) return []
    return { mode: 'refund', limits: [{ ...limit, cost }], decidedAt }
  })
  if (requests.length === 0) return
  await store.decide(requests, { deadlineMs: DEADLINE_MS, ...(waitUntil && { waitUntil }) })
}

/** The units of a charge that a response keeps. */
function unitsKept({ policy, cost }: PolicyLimit, { status, headers }: ResponseHead): number {
  if (policy.algorithm === 'concurrency') return 0 // release the slot after any response
  const { countOnly } = policy
  if (countOnly && !countOnly.some(([low, high]) => low <= status && status <= high)) return 0
  const price = policy.cost.response && headers.get(policy.cost.response)
  // The charge is the upper bound: a higher price could no longer refuse the request.
  return price && /^\d{1,15}$/.test(price) ? Math.min(cost, Number(price)) : cost
}
