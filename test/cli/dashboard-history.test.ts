/** The counts that the command of the dashboard keeps, compared with those of an isolate that were never forgotten. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createHistory } from '../../cli/dashboard/history.ts'
import { ranges } from '../../cli/dashboard/ranges.ts'
import { createCounters } from '../../src/features/observe/counters.ts'
import type { Stats } from '../../src/features/observe/report.ts'

const START = Date.UTC(2026, 10, 28, 12, 0, 5)
const MINUTE = 60_000
const decision = {
  policy: 'a',
  outcome: 'allowed',
  decidedBy: 'store',
  units: 1,
  near: false,
} as const
const sumOf = (slots: Stats['slots']) =>
  slots.flatMap(({ series }) => series).reduce((sum, { decisions }) => sum + decisions, 0)

/** An isolate, and what the dashboard reads of it. */
function isolate() {
  const counters = createCounters(false)
  return {
    decide: (now: number) => counters.decided(decision, now),
    read: (now: number) => ({ now, total: counters.total(now), slots: counters.slots(now) }),
  }
}

test('Read at least every nine minutes, an hour has each decision of its isolates once, in its minute.', () => {
  const steps = fc.array(
    fc.record({
      afterMs: fc.integer({ min: 1, max: 4.5 * MINUTE }).map((half) => 2 * half),
      by: fc.nat(1),
      decisions: fc.nat(5),
    }),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(steps, (list) => {
      const history = createHistory()
      const isolates = [isolate(), isolate()]
      const times: number[] = []
      let now = START
      for (const { afterMs, by, decisions } of list) {
        now += afterMs
        for (let n = 0; n < decisions; n += 1) {
          isolates[by]!.decide(now + by) // their counts begin at different times, even and odd
          times.push(now + by)
        }
        for (const one of isolates)
          if (one.read(now).slots.length > 0) history.add(one.read(now + 1))
      }
      const { slotMs, slots } = ranges.hour
      now += 1 // the last decision may be that late
      const first = Math.floor(now / slotMs) * slotMs - (slots - 1) * slotMs
      const kept = times.filter((at) => at >= first)
      const read = history.read('hour', now)!
      expect(sumOf(read.slots)).toBe(kept.length)
      for (const { from, to, series } of read.slots) {
        const own = kept.filter((at) => from <= at && at < to).length
        expect(sumOf([{ from, to, series }])).toBe(own)
      }
    }),
  )
})

test('A minute that an isolate has forgotten in part stays as it was.', () => {
  const history = createHistory()
  const one = isolate()
  const minute = START - (START % MINUTE)
  for (const afterMs of [5_000, 45_000]) one.decide(minute + afterMs)
  history.add(one.read(minute + 50_000))
  one.decide(minute + 9 * MINUTE)
  history.add(one.read(minute + 10 * MINUTE + 20_000))
  const { slots } = history.read('hour', minute + 11 * MINUTE)!
  expect(
    slots.map(({ from, series }) => [from - minute, sumOf([{ from, to: from, series }])]),
  ).toEqual([
    [0, 2],
    [9 * MINUTE, 1],
  ])
})

test('A day is kept, and what is older is forgotten. A week is not kept.', () => {
  const history = createHistory()
  const one = isolate()
  for (let minute = 0; minute <= 1_500; minute += 5) {
    one.decide(START + minute * MINUTE)
    history.add(one.read(START + minute * MINUTE))
  }
  const now = START + 1_500 * MINUTE
  const { slots, since } = history.read('day', now)!
  expect(sumOf(slots)).toBeGreaterThan(280)
  expect(sumOf(slots)).toBeLessThan(289)
  expect(now - since).toBeLessThanOrEqual(24 * 60 * MINUTE + MINUTE)
  expect(history.read('week', now)).toBeUndefined()
})
