import type { Limit } from '../../src/store/store.ts'
import type { ModelLimit, ModelRequest } from '../model/model.ts'

/** What a row of this policy carries at `now`, as far as it does not say: the calendar's periods, its penalty, slots of its own. */
export function completeLimit(row: ModelLimit, now: number): ModelLimit {
  const { lengths, penalty, tag, algorithm } = row.terms
  return {
    ...(lengths && { period: periodOf(lengths, now) }),
    ...(penalty && { penalty: { tag: `${tag}-p`, ...penalty } }),
    ...(algorithm === 'concurrency' && { slot: newSlot() }),
    ...row,
  }
}

export const completeRequests = (requests: ModelRequest[], now: number): ModelRequest[] =>
  requests.map((request) => ({
    ...request,
    limits: request.limits.map((row) => completeLimit(row, now)),
  }))

let slots = 0
export const newSlot = () => `slot-${++slots}`

/** The contract ends at 2^51 ms. */
const last = 2 ** 51

/** Periods of these lengths follow on each other, over and over, from 0 on: the one around `now`, and the next. */
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
