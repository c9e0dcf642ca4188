/** Calls in flight with leased units, and requests that wait for them. On Workers a request must not await a promise of another one. */
import type { QuotaState } from '../../core/base/decision.ts'
import { WaitQueue } from '../../core/base/wait-queue.ts'
import type { Limit, StoreReply, StoreRequest } from '../../core/connection/store.ts'
import type { Lease } from './lease.ts'

/** The lease of a quota, which may hold no units, and the calls in flight that carry units of the quota. */
export interface LeasedQuota {
  lease: Lease
  calls: Set<LeaseCall>
}

export type LeasedLimits = Map<Limit, LeasedQuota>

/** The units of one quota in a call. They are neither held nor spent until the call ends. */
interface Load {
  /** Units taken in advance that no waiting request has reserved. */
  free: number
  /** Units that the call refunds, or that are lent to its request. */
  bound: number
}

export class LeaseCall {
  /** When the call is ignored, ms since the epoch: its request may have been cancelled. */
  readonly until: number
  readonly loads = new Map<LeasedQuota, Load>()
  readonly waiting = new WaitQueue<
    { requests: StoreRequest[]; quotas: LeasedLimits },
    StoreReply | undefined
  >()

  constructor(until: number) {
    this.until = until
  }

  carry(quota: LeasedQuota, { free = 0, bound = 0 }: Partial<Load>): void {
    const load = this.loads.get(quota) ?? { free: 0, bound: 0 }
    this.loads.set(quota, { free: load.free + free, bound: load.bound + bound })
    quota.calls.add(this)
  }

  /** Ends the call. Answers the waiting requests in order while the lease holds enough units; the others get `undefined`. */
  end(now: number): void {
    for (const { calls } of this.loads.keys()) calls.delete(this)
    for (const { requests, quotas, answer } of this.waiting) answer(spend(requests, quotas, now))
    for (const quota of this.loads.keys()) quota.lease.trim(unitsInFlight(quota, now))
  }
}

function callsInFlight({ calls }: LeasedQuota, now: number): LeaseCall[] {
  for (const call of calls) if (call.until <= now) calls.delete(call)
  return [...calls]
}

export function unitsInFlight(quota: LeasedQuota, now: number): number {
  const loads = callsInFlight(quota, now).map((call) => call.loads.get(quota)!)
  return loads.reduce((sum, { free, bound }) => sum + free + bound, 0)
}

/** True if this isolate holds units of a quota, or may soon receive some. */
export const mayGetMore = (quota: LeasedQuota, now: number): boolean =>
  quota.lease.has(1, now) || callsInFlight(quota, now).length > 0

export const areLeased = (requests: StoreRequest[], quotas: LeasedLimits): boolean =>
  requests.every(({ limits }) => limits.every((limit) => quotas.has(limit)))

/** Finds a call in flight that carries all missing units, and reserves them. */
export function reserve(quotas: LeasedLimits, now: number): LeaseCall | undefined {
  const missing = [...quotas].filter(([{ cost }, { lease }]) => !lease.has(cost, now))
  const call = [...missing[0]![1].calls].find(
    ({ until, loads }) =>
      now < until && missing.every(([{ cost }, quota]) => cost <= (loads.get(quota)?.free ?? 0)),
  )
  if (call) for (const [{ cost }, quota] of missing) call.loads.get(quota)!.free -= cost
  return call
}

/** Answers requests from held units. Returns `undefined`, and spends nothing, if a limit has no lease or a lease holds too few units. */
export function spend(
  requests: StoreRequest[],
  quotas: LeasedLimits,
  now: number,
): StoreReply | undefined {
  if (!areLeased(requests, quotas)) return undefined
  for (const [{ cost }, { lease }] of quotas) if (!lease.has(cost, now)) return undefined
  const states = new Map<Limit, QuotaState>()
  let latest = 0
  for (const [limit, { lease }] of quotas) {
    lease.take(limit.cost)
    const { decidedAt, state } = lease.status(now)
    states.set(limit, state)
    latest = Math.max(latest, decidedAt)
  }
  return {
    decidedAt: latest,
    states: requests.map(({ limits }) => limits.map((limit) => states.get(limit)!)),
    leased: true,
  }
}
