/** Changes a sliding log: the time of each unit, oldest first. A unit counts while its time is above now - window. */
import { MAX_ENTRIES } from '../../core/base/units.ts'
import type { Limit } from '../../core/connection/store.ts'

type Times = readonly number[]

/** The time at which a log is read. A clock that moves back does not revive entries. */
const timeOf = (times: Times, now: number) => Math.max(now, times.at(-1) ?? now)

function liveTimes(times: Times, windowMs: number, now: number): number[] {
  const after = timeOf(times, now) - windowMs
  return times.filter((time) => time > after)
}

/** Charges units that were already used, at most 10,000 entries. */
export function owedTimes({ terms, cost }: Limit, now: number, times: Times): Times | undefined {
  const live = liveTimes(times, terms.windowMs, now)
  const units = Math.min(cost, MAX_ENTRIES - live.length)
  if (units <= 0) return undefined
  return [...live, ...new Array<number>(units).fill(timeOf(times, now))]
}

/** Removes the units of `decidedAt`, or the newest before it, so that later units keep their time; then, or without it, the newest units. */
export function refundedTimes(
  { terms: { windowMs }, cost }: Limit,
  now: number,
  times: Times,
  decidedAt: number | undefined,
): Times | undefined {
  if (decidedAt !== undefined && decidedAt <= timeOf(times, now) - windowMs) return undefined
  const live = liveTimes(times, windowMs, now)
  const gone = Math.min(cost, live.length)
  if (gone === 0) return undefined
  if (gone === live.length) return []
  const dead = times.slice(0, times.length - live.length)
  const early = decidedAt === undefined ? 0 : live.filter((time) => time <= decidedAt).length
  const removed = Math.min(gone, early)
  const kept = live.slice(0, early - removed)
  const later = live.slice(early)
  return [...dead, ...kept, ...later.slice(0, later.length - (gone - removed))]
}
