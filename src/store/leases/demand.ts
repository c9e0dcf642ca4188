import { isWithin } from '../../base/clock.ts'

/** A sliding count of requested units: two counters, the older weighted by the part of its span that still counts. */
export interface Demand {
  add(units: number, now: number): void
  /** Units within the last span. */
  lately(now: number): number
}

/** @param spanMs ms */
export function createDemand(spanMs: number): Demand {
  let start = Number.NEGATIVE_INFINITY
  let current = 0
  let previous = 0

  function roll(now: number) {
    if (isWithin(now, start, start + spanMs)) return
    const follows = isWithin(now, start + spanMs, start + 2 * spanMs)
    previous = follows ? current : 0
    current = 0
    start = follows ? start + spanMs : now
  }

  return {
    add(units, now) {
      roll(now)
      current += units
    },
    lately(now) {
      roll(now)
      return current + previous * (1 - (now - start) / spanMs)
    },
  }
}
