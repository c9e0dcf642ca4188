/** When a request that does not fit now would fit, on the states of one subject. lua/places.lua is its twin. */
import { algorithms, capacityOf } from '../../core/connection/algorithms/index.ts'
import type { Limit } from '../../core/connection/store.ts'
import { type InRecord, quotaOf, taken } from '../../stores/durable-objects/charge.ts'
import { liveTimes, owedTimes } from '../../stores/durable-objects/log.ts'
import { type KeptState, liveState, type Parts } from '../../stores/durable-objects/record.ts'

/** The first time from `now` on at which the cost of a limit fits; `undefined` if it never does. No state is read at a time before its own. */
export function earliest(parts: Parts, limit: Limit, now: number): number | undefined {
  const { cost, terms } = limit
  const state = stateAt(parts, limit, now)
  const quota = quotaOf(limit)
  if (cost > capacityOf(terms.algorithm, quota)) return undefined
  const decide = algorithms[terms.algorithm as InRecord | 'sliding-log']
  const { retryAfterMs } = decide(now, quota, cost, state)
  return Math.max(now + retryAfterMs!, state?.time ?? now)
}

/** The state of a limit at a time. A log ends one window after its newest unit. */
export function stateAt(parts: Parts, { terms }: Limit, at: number): KeptState | undefined {
  const { tag, algorithm, windowMs } = terms
  if (algorithm !== 'sliding-log') return liveState(parts.record, tag, at)
  const numbers = liveTimes(parts.log(tag), windowMs, at)
  const time = numbers.at(-1)
  return time === undefined ? undefined : { time, numbers: [...numbers], end: time + windowMs }
}

/** Charges a limit at a time. */
export function charge(parts: Parts, limit: Limit, at: number, how: typeof taken = taken): void {
  const { tag, algorithm, windowMs } = limit.terms
  if (limit.cost === 0) return
  if (algorithm === 'sliding-log') {
    const after = owedTimes(limit, at, parts.log(tag))
    if (after) parts.setLog(tag, after, (after.at(-1) ?? 0) + windowMs)
    return
  }
  const after = how(limit, at, liveState(parts.record, tag, at))
  if (after && after !== 'none') setState(parts, tag, after)
}

export const setState = (parts: Parts, tag: string, state: KeptState): void => {
  parts.record = new Map(parts.record).set(tag, state)
}

/** A line lives a minute longer than its time, for a clock that moves back. */
export const lineState = (time: number, coolUntil = 0): KeptState => ({
  time,
  end: time + 60_000,
  numbers: [coolUntil],
})
