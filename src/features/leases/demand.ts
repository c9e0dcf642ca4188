import { isWithin } from '../../core/base/clock.ts'

/**
 * Counts the recently requested units, as a sliding window does: two counters, the older one weighted by its remaining overlap.
 * @param spanMs the length of the window, ms
 */
export function createDemand(spanMs: number) {
  let start = Number.NEGATIVE_INFINITY
  let current = 0
  let previous = 0

  function roll(now: number) {
    if (isWithin(now, start, start + spanMs)) return
    const isNextSpan = isWithin(now, start + spanMs, start + 2 * spanMs)
    previous = isNextSpan ? current : 0
    current = 0
    start = isNextSpan ? start + spanMs : now
  }

  return {
    add(units: number, now: number): void {
      roll(now)
      current += units
    },
    /** The units within the last span. */
    recent(now: number): number {
      roll(now)
      return current + previous * (1 - (now - start) / spanMs)
    },
  }
}
