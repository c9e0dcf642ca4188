/** The step `settle`: after the response, keeps each charge or refunds all or a part of it, and releases slots. */
import type { StoreError } from '../base/errors.ts'
import type { Policy } from '../config/parse.ts'
import { counts } from '../config/schema/outcomes.ts'
import type { Store, StoreOptions, StoreRequest } from '../connection/store.ts'
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

/** The units that a response keeps of each charge, if its cost was in its body. */
export type Kept = Map<PolicyLimit, number>

/** The charges of one response, for the reader of its body. */
export interface Metering {
  /** All charges that depend on the response. The reader adds the units that it takes for a stream (`cost.cut`). */
  charges: Charge[]
  /** Receives the errors of the store. */
  onStoreError: (error: StoreError) => void
  waitUntil: (promise: Promise<unknown>) => void
  /** Settles all charges. Called once, after the body. */
  end: (kept: Kept) => void
}

/** True if the charge of a limit depends on the response: on its status, its price, its body, or its end (slots). */
export const dependsOnResponse = ({ policy }: Pick<PolicyLimit, 'policy'>): boolean =>
  policy.countOnly !== undefined ||
  policy.cost.response !== undefined ||
  readsBody(policy) ||
  policy.algorithm === 'concurrency'

/** True if a charge has slots. They are released after the end of the response body. */
export const holdsSlots = ({ limits }: Charge): boolean =>
  limits.some(({ policy }) => policy.algorithm === 'concurrency')

/** The part of a response that charges are settled by. */
export type ResponseHead = Pick<Response, 'status' | 'headers'>

/** True if the cost of a policy is in the body of the response. */
export const readsBody = ({ cost }: Policy): boolean => cost.usage !== undefined

/** The deadline of a refund, ms. It is long because no request waits for it, and a failed refund blocks the units until they expire. */
const DEADLINE_MS = 5_000

/**
 * Refunds the units that a response does not count, charges those that it used beyond its charge, and releases the slots, in one call.
 * @param response `undefined` for a refused request, which gets a full refund
 * @param kept the units of limits whose cost was in the body of the response
 */
export async function settle(
  { limits, charged, store }: Charge,
  response: ResponseHead | undefined,
  waitUntil?: StoreOptions['waitUntil'],
  kept?: Kept,
): Promise<void> {
  const requests = refundsOf(limits, await charged, response, kept)
  if (requests.length === 0) return
  await store.decide(requests, { deadlineMs: DEADLINE_MS, ...(waitUntil && { waitUntil }) })
}

/**
 * The refunds and debts after a response: one request for each limit, so that they do not depend on each other.
 * @param response `undefined` for a refused request, which gets a full refund
 */
export const refundsOf = (
  limits: PolicyLimit[],
  charged: Charged,
  response: ResponseHead | undefined,
  kept?: Kept,
): StoreRequest[] =>
  limits.flatMap((limit): StoreRequest | [] => {
    const decidedAt = charged.get(limit)
    const cost = limit.cost - (response ? unitsKept(limit, response, kept?.get(limit)) : 0)
    if (decidedAt === undefined || cost === 0) return []
    return cost > 0
      ? { mode: 'refund', limits: [{ ...limit, cost }], decidedAt }
      : { mode: 'debt', limits: [{ ...limit, cost: -cost }] }
  })

/**
 * The units of a charge that a response keeps.
 * @param metered the cost in the body of the response, which may be higher than the charge
 */
export function unitsKept(
  { policy, cost }: Pick<PolicyLimit, 'policy' | 'cost'>,
  { status, headers }: ResponseHead,
  metered?: number,
): number {
  if (policy.algorithm === 'concurrency') return 0 // release the slot after any response
  if (!counts(policy, status)) return 0
  if (metered !== undefined) return metered
  const price = policy.cost.response && headers.get(policy.cost.response)
  // The charge is the upper bound: a higher price could no longer refuse the request.
  return price && /^\d{1,15}$/.test(price) ? Math.min(cost, Number(price)) : cost
}
