/** The step `settle`: after the response, keeps each charge or refunds all or a part of it, and releases slots. */
import type { Policy } from '../config/parse.ts'
import {
  type Correction,
  type FallenBack,
  type Limit,
  REFUND_MS,
  type Store,
  type StoreOptions,
  type StoreRequest,
  type StoreState,
} from '../connection/store.ts'
import type { PolicyLimit } from './limit.ts'

export interface Charge {
  /** By the store's clock, ms since the epoch. A refund carries this time, so that units that have expired since are not refunded. */
  decidedAt: number
  fallback?: FallenBack
}

/** The charge of a limit by its state in a reply. `undefined` if nothing was charged. */
export function chargeOf({ allowed, fallback, decidedAt: own }: StoreState, decidedAt: number) {
  if (!fallback) return allowed ? { decidedAt: own ?? decidedAt } : undefined
  const mayBeCharged = (fallback.localAt ?? fallback.late) !== undefined
  return mayBeCharged ? { decidedAt, fallback } : undefined
}

/** The charged limits that depend on the response. */
export type Charges = Map<PolicyLimit, Charge>

/** The units that a response keeps of each charge, if its cost was in its body, or its size. */
export type Kept = Map<PolicyLimit, number>

/** The charges of one response, for the reader of its body. */
export interface Metering {
  /** The charged limits that depend on the response. */
  limits: PolicyLimit[]
  /** False for a response to HEAD, whose body servers discard. */
  isSent: boolean
  /** Takes further units, which are settled with the others if they are admitted. */
  take: (limit: PolicyLimit) => Promise<Pick<StoreState, 'allowed' | 'retryAfterMs'>>
  /** Settles all charges. Called once, after the body. */
  end: (kept: Kept) => void
}

export type ResponseHead = Pick<Response, 'status' | 'headers'>

/** True if the limit has slots. They are released after the end of the response body. */
export const holdsSlots = ({ terms }: PolicyLimit): boolean => terms.algorithm === 'concurrency'

export const readsBody = ({ cost }: Policy): boolean => cost.usage !== undefined

/** Takes further units while the response runs, and adds their charge to those that are settled. */
export async function takeMore(
  limit: PolicyLimit,
  charges: Charges,
  store: Store,
  waitUntil: NonNullable<StoreOptions['waitUntil']>,
): Promise<StoreState> {
  const { deadlineMs } = limit.terms
  const options = { deadlineMs, waitUntil, fallback: true }
  const { states, decidedAt } = await store.decide([{ mode: 'take', limits: [limit] }], options)
  const state = states[0]![0]!
  const charge = chargeOf(state, decidedAt)
  if (charge) charges.set(limit, charge)
  return state
}

/** A request about limits of policies. */
export type PolicyRequest = StoreRequest & { limits: PolicyLimit[] }

/** The parts of an isolate that a change of a quota makes outdated. */
interface IsolateParts {
  denialCache?: { forget(now: number, subjects: string[]): void } | undefined
  waiting?: { wake(limits: readonly Limit[]): void } | undefined
}

/**
 * Refunds the units that a response does not count, charges those beyond its charge, and releases the slots, in one call.
 * @param response `undefined` if it is not known: an unknown response counts, with the whole charge
 */
export async function settle(
  charges: Charges,
  { store, ...isolate }: IsolateParts & { store: Store },
  response: ResponseHead | undefined,
  waitUntil: NonNullable<StoreOptions['waitUntil']>,
  kept?: Kept,
): Promise<void> {
  const requests = correctionsOf(charges, response, kept)
  if (requests.length === 0) return
  const settling = store.decide(requests, { deadlineMs: REFUND_MS, waitUntil })
  await settling.finally(() => tellIsolate(requests, isolate))
}

/**
 * Tells the isolate that these requests may have changed what is left, also after an error: they may have been applied. A ban replaces the one
 * in force, which may be longer.
 */
export function tellIsolate(
  requests: PolicyRequest[],
  { denialCache, waiting }: IsolateParts,
): void {
  for (const { mode, limits } of requests) {
    if (mode === 'peek') continue
    const isSettlement = mode === 'refund' || mode === 'debt'
    const subjects: string[] = []
    // The cache keeps only the bans of a policy that settles, and a settlement ends no ban.
    for (const { terms, subject } of limits)
      if (!isSettlement || !terms.settles) subjects.push(subject)
    denialCache?.forget(Date.now(), subjects)
    waiting?.wake(limits)
  }
}

/** The refunds and debts after a response: one request for each limit, so that they do not depend on each other. */
export function correctionsOf(charges: Charges, response: ResponseHead | undefined, kept?: Kept) {
  const requests: (Correction & PolicyRequest)[] = []
  for (const [limit, charge] of charges) {
    const cost = limit.cost - unitsKept(limit, response, kept?.get(limit))
    if (cost > 0) requests.push({ mode: 'refund', limits: [{ ...limit, cost }], ...charge })
    if (cost < 0) requests.push({ mode: 'debt', limits: [{ ...limit, cost: -cost }], ...charge })
  }
  return requests
}

/** The units of a charge that a response keeps: all if it is not known. `metered`, the cost in its body, may be higher than the charge. */
export function unitsKept(
  { terms, cost }: Pick<PolicyLimit, 'terms' | 'cost'>,
  response: ResponseHead | undefined,
  metered?: number,
): number {
  if (terms.algorithm === 'concurrency') return 0 // release the slot after any response
  if (response && !counts(terms, response.status)) return 0
  if (metered !== undefined) return metered
  const price = terms.cost.response && response?.headers.get(terms.cost.response)
  // The charge is the upper bound: a higher price could no longer refuse the request.
  return price && /^\d{1,15}$/.test(price) ? Math.min(cost, Number(price)) : cost
}

export const counts = ({ countOnly }: Pick<Policy, 'countOnly'>, status: number): boolean =>
  !countOnly || countOnly.some(([low, high]) => low <= status && status <= high)
