import { expect, test } from 'vitest'
import { type Counted, createCounters, SLOT_MS } from '../../../../src/features/observe/counters.ts'
import { OTHER_POLICIES } from '../../../../src/features/observe/report.ts'

const NOW = 1_789_000_000_000
const counted = (change: Partial<Counted> = {}): Counted => ({
  policy: 'a',
  outcome: 'allowed',
  decidedBy: 'store',
  units: 1,
  near: false,
  ...change,
})

test('Decisions are added up by policy, outcome and decider.', () => {
  const counters = createCounters(true)
  counters.decided(counted({ units: 2 }), NOW)
  counters.decided(counted({ units: 3, near: true }), NOW + 1)
  counters.decided(counted({ outcome: 'limited', decidedBy: 'cache', near: true }), NOW + 2)
  counters.decided(counted({ policy: 'b' }), NOW + 3)
  const { from, to, series } = counters.total(NOW + 10)
  expect([from, to]).toEqual([NOW, NOW + 10])
  expect(series).toEqual([
    { policy: 'a', outcome: 'allowed', decidedBy: 'store', decisions: 2, units: 5, near: 1 },
    { policy: 'a', outcome: 'limited', decidedBy: 'cache', decisions: 1, units: 1, near: 1 },
    { policy: 'b', outcome: 'allowed', decidedBy: 'store', decisions: 1, units: 1, near: 0 },
  ])
})

test('take returns each decision, refusal and call once, and the total keeps them.', () => {
  const counters = createCounters(true)
  const call = { ms: 7, billedCommands: 4, lists: 1 }
  counters.decided(counted(), NOW)
  counters.refused('a', 'x', NOW)
  counters.called(call, NOW)
  const first = counters.take(NOW + 10)
  counters.decided(counted(), NOW + 20)
  counters.refused('a', 'x', NOW + 20)
  counters.called({ ...call, code: 'timeout', billedCommands: 0 }, NOW + 20)
  const second = counters.take(NOW + 30)
  for (const { series, offenders, store } of [first, second]) {
    expect(series.map(({ decisions }) => decisions)).toEqual([1])
    expect(offenders).toEqual([{ policy: 'a', subject: 'x', refusals: 1, error: 0 }])
    expect(store.calls).toBe(1)
  }
  const times = [first.from, first.to, second.from, second.to]
  expect(times.map((time) => time - NOW)).toEqual([0, 10, 10, 30])
  expect(counters.take(NOW + 40).series).toEqual([])
  const total = counters.total(NOW + 50)
  expect(total.series[0]!.decisions).toBe(2)
  expect(total.offenders[0]!.refusals).toBe(2)
  expect(total.store).toMatchObject({ calls: 2, billedCommands: 4, errors: { timeout: 1 } })
  expect(first.store.errors).toEqual({}) // later calls do not change it
})

test('Offenders are sorted by their refusals across all policies.', () => {
  const counters = createCounters(false)
  const refusals = { x: 1, y: 3, z: 2 }
  for (const [subject, times] of Object.entries(refusals))
    for (let n = 0; n < times; n++) counters.refused(subject === 'y' ? 'b' : 'a', subject, NOW)
  expect(counters.total(NOW).offenders.map(({ subject }) => subject)).toEqual(['y', 'z', 'x'])
})

test('A latency counts in the first bucket whose bound it does not exceed.', () => {
  const counters = createCounters(false)
  for (const ms of [0, 1, 2, 3, 5_000, 5_001]) {
    counters.called({ ms, billedCommands: 0, lists: 1 }, NOW)
  }
  const { bounds, counts, sum } = counters.total(NOW).store.latency
  expect(counts).toHaveLength(bounds.length + 1)
  expect(counts[0]).toBe(2)
  expect(counts.slice(0, 3)).toEqual([2, 1, 1])
  expect(counts.slice(-2)).toEqual([1, 1])
  expect(sum).toBe(10_007)
})

test('A slot has the decisions of ten seconds, and slots without decisions are left out.', () => {
  const counters = createCounters(false)
  const start = NOW - (NOW % SLOT_MS)
  for (const ms of [0, 9_999, 10_000, 35_000]) counters.decided(counted(), start + ms)
  const slots = counters.slots(start + 36_000)
  expect(
    slots.map(({ from, to, series }) => [from - start, to - start, series[0]!.decisions]),
  ).toEqual([
    [0, 10_000, 2],
    [10_000, 20_000, 1],
    [30_000, 40_000, 1],
  ])
})

test('Slots are kept for ten minutes.', () => {
  const counters = createCounters(false)
  const start = NOW - (NOW % SLOT_MS)
  for (let slot = 0; slot < 100; slot++) counters.decided(counted(), start + slot * SLOT_MS)
  expect(counters.slots(start + 99 * SLOT_MS)).toHaveLength(60)
  expect(counters.slots(start + 99 * SLOT_MS + 300_000)).toHaveLength(31)
  expect(counters.slots(start + 99 * SLOT_MS + 700_000)).toEqual([])
})

test('After the clock is set back, slots in the future are dropped and the order stays.', () => {
  const counters = createCounters(false)
  const start = NOW - (NOW % SLOT_MS)
  for (const ms of [0, 60_000, 30_000]) counters.decided(counted(), start + ms)
  expect(counters.slots(start + 30_000).map(({ from }) => from - start)).toEqual([0, 30_000])
})

test('A clock that goes back by an instant loses no decision of a slot.', () => {
  const counters = createCounters(false)
  const start = NOW - (NOW % SLOT_MS)
  for (const ms of [-2, 1, -1, 2]) counters.decided(counted(), start + ms)
  const slots = counters.slots(start + 2)
  expect(slots.map(({ from, series }) => [from - start, series[0]!.decisions])).toEqual([
    [-SLOT_MS, 2],
    [0, 2],
  ])
})

test('After the clock is set back, a span does not end before it begins.', () => {
  const counters = createCounters(true)
  counters.decided(counted(), NOW)
  const total = counters.total(NOW - 60_000)
  const taken = counters.take(NOW - 60_000)
  for (const { from, to } of [total, taken]) expect([from, to]).toEqual([NOW, NOW])
  expect(counters.take(NOW - 30_000)).toMatchObject({ from: NOW - 60_000, to: NOW - 30_000 })
})

test('The number of series is bounded, and no decision is lost beyond it.', () => {
  const counters = createCounters(true)
  for (let n = 0; n < 5_000; n++) {
    counters.decided(counted({ policy: `p${n}` }), NOW)
    counters.refused(`p${n}`, 'x', NOW)
  }
  for (const { series, offenders } of [counters.total(NOW), counters.take(NOW)]) {
    expect(series.length).toBeLessThanOrEqual(2_100)
    expect(series.reduce((sum, { decisions }) => sum + decisions, 0)).toBe(5_000)
    expect(series.find(({ policy }) => policy === OTHER_POLICIES)!.decisions).toBeGreaterThan(2_000)
    expect(offenders.length).toBeLessThanOrEqual(256)
  }
})
