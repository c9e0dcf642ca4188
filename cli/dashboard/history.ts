/**
 * The counts of the last day by minute, in the memory of this process. An isolate keeps ten minutes, so they are read at least every five:
 * the answers that the page gets are enough while it is open. No call of it reaches the database.
 */
import type { Series, Stats } from '../../src/features/observe/report.ts'
import { type History, type Range, ranges } from './ranges.ts'

const MINUTE_MS = 60_000
const KEPT_MS = ranges.day.slotMs * ranges.day.slots

const minuteOf = ({ from }: { from: number }) => from - (from % MINUTE_MS)

/** Adds up series of the same policy, outcome and decider. */
function merged(series: Series[]): Series[] {
  const sums = new Map<string, Series>()
  for (const one of series) {
    const key = JSON.stringify([one.policy, one.outcome, one.decidedBy])
    const sum = sums.get(key)
    if (!sum) sums.set(key, { ...one })
    else {
      sum.decisions += one.decisions
      sum.units += one.units
      sum.near += one.near
    }
  }
  return [...sums.values()]
}

export function createHistory() {
  /** By isolate, which the start of its counts identifies: the minutes, by their start. */
  const isolates = new Map<number, Map<number, Series[]>>()

  return {
    /** Takes the counts of one isolate. A minute that they have as a whole replaces what was known of it. */
    add({ now, total, slots }: Pick<Stats, 'now' | 'total' | 'slots'>): void {
      const minutes = isolates.get(total.from) ?? new Map<number, Series[]>()
      isolates.set(total.from, minutes)
      for (const minute of new Set(slots.map(minuteOf))) {
        const own = slots.filter((slot) => minuteOf(slot) === minute)
        const isWhole = minute > now - ranges.minutes.slots * ranges.minutes.slotMs
        if (isWhole || !minutes.has(minute)) {
          minutes.set(minute, merged(own.flatMap(({ series }) => series)))
        }
      }
      for (const [id, minutes] of isolates) {
        for (const minute of minutes.keys()) if (minute < now - KEPT_MS) minutes.delete(minute)
        if (minutes.size === 0) isolates.delete(id)
      }
    },

    /** @returns `undefined` for a range that is not kept */
    read(range: Range, now: number): History | undefined {
      const { slotMs, slots } = ranges[range]
      if (range === 'week') return undefined
      const first = Math.floor(now / slotMs) * slotMs - (slots - 1) * slotMs
      const bySlot = new Map<number, Series[]>()
      for (const minutes of isolates.values()) {
        for (const [minute, series] of minutes) {
          const from = minute - (minute % slotMs)
          if (from >= first) bySlot.set(from, [...(bySlot.get(from) ?? []), ...series])
        }
      }
      return {
        since: Math.min(now, ...[...isolates.values()].flatMap((minutes) => [...minutes.keys()])),
        isolates: isolates.size,
        slots: [...bySlot]
          .toSorted(([a], [b]) => a - b)
          .map(([from, series]) => ({ from, to: from + slotMs, series: merged(series) })),
      }
    },
  }
}
