/** Figures of a run. */
import { dollarsAMonth } from '../../../cli/dashboard/page/figures.ts'
import type { Served } from './door.ts'
import type { Run } from './simulate.ts'

export interface Summary {
  requests: number
  admitted: number
  refused: number
  /** The most units that one client got within any window of the first policy. */
  most: number
  calls: number
  commands: number
  /** The price of a month of traffic at this rate. */
  dollarsAMonth: number
}

/**
 * The most units that any client got within a half-open interval.
 * @param policy the name of the policy. Defaults to the first that applies
 */
export function mostWithin(served: readonly Served[], windowMs: number, policy?: string): number {
  let most = 0
  for (const own of Map.groupBy(served, ({ arrival }) => arrival.ip).values()) {
    const admitted = own
      .filter(({ decision }) => decision.allowed)
      .sort((one, other) => one.at - other.at)
    const costOf = ({ decision: { limits } }: Served) =>
      policy ? (limits.find((one) => one.policy === policy)?.cost ?? 0) : (limits[0]?.cost ?? 1)
    let first = 0
    let units = 0
    for (const one of admitted) {
      units += costOf(one)
      while (admitted[first]!.at <= one.at - windowMs) {
        units -= costOf(admitted[first]!)
        first += 1
      }
      most = Math.max(most, units)
    }
  }
  return most
}

/** @param lengthMs the length of the traffic */
export function summaryOf({ served, bill }: Run, windowMs: number, lengthMs: number): Summary {
  const admitted = served.filter(({ decision }) => decision.allowed).length
  return {
    requests: served.length,
    admitted,
    refused: served.length - admitted,
    most: mostWithin(served, windowMs),
    ...bill,
    dollarsAMonth: dollarsAMonth(bill.commands / Math.max(1, lengthMs / 1000)),
  }
}
