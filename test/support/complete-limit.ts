import type { Limit } from '../../src/core/connection/store.ts'
import type { ModelLimit, ModelRequest } from '../model/model.ts'

/** Adds the missing parts of a limit at `now`: the period of the calendar, the penalty, a new slot, new values. */
export function completeLimit(row: ModelLimit, now: number): ModelLimit {
  const { lengths, penalty, tag, algorithm } = row.terms
  return {
    ...(lengths && { period: periodOf(lengths, now) }),
    ...(penalty && { penalty: { tag: `${tag}-p`, ...penalty } }),
    ...(algorithm === 'concurrency' && { slot: newSlot() }),
    ...(algorithm === 'distinct' && { values: newValues(row.cost) }),
    ...row,
  }
}

export const completeRequests = (requests: ModelRequest[], now: number): ModelRequest[] =>
  requests.map((request) => ({
    ...request,
    limits: request.limits.map((row) => completeLimit(row, now)),
  }))

let slots = 0
const newValues = (cost: number) =>
  Array.from({ length: Math.max(1, Math.min(cost, 100)) }, newSlot)
export const newSlot = () => `slot-${++slots}`

/** The script accepts times up to 2^51 ms. */
const last = 2 ** 51

/**
 * Periods of these lengths repeat from time 0 on.
 * @returns the start and end of the period that contains `now`, and the end of the next one
 */
export function periodOf(lengths: number[], now: number): NonNullable<Limit['period']> {
  const round = lengths.reduce((sum, length) => sum + length, 0)
  const lengthAt = (index: number) => lengths[index % lengths.length]!
  let start = Math.max(0, Math.min(now, last - 3 * round))
  start -= start % round
  let index = 0
  while (start + lengthAt(index) <= Math.min(now, last - 3 * round)) start += lengthAt(index++)
  const end = start + lengthAt(index)
  return [start, end, end + lengthAt(index + 1)]
}
