import { describe, expect, test } from 'vitest'
import { byPolicy, quantile, rates, refusing, timeline } from '../../cli/dashboard/page/figures.ts'
import {
  boundText,
  dollarText,
  durationText,
  rateText,
  shareText,
} from '../../cli/dashboard/page/text.ts'
import { seriesOf, statsAt } from '../support/dashboard-stats.ts'

const now = 1_795_305_360_000 // the start of a slot
const stats = statsAt(now)

describe('the figures of the dashboard', () => {
  test('A quantile is the upper bound of its bucket.', () => {
    const { latency } = stats.total.store
    expect([0, 0.5, 0.9, 0.99, 1].map((q) => quantile(latency, q))).toEqual([
      1,
      2,
      5,
      50,
      Number.POSITIVE_INFINITY,
    ])
    expect(quantile({ bounds: [1], counts: [0, 0], sum: 0 }, 0.5)).toBeUndefined()
  })

  test('The rates are those of the last minute, and the price is that of 30 days.', () => {
    const { requests, refused, calls, commands, dollarsAMonth } = rates(stats)
    expect([requests, refused]).toEqual([600, 180])
    expect([calls, commands]).toEqual([0.5, 2])
    expect(dollarsAMonth).toBeCloseTo(10 * 2 * 86_400 * 30 * (0.2 / 100_000))
  })

  test('The last minute is the last 60 s: of the slot in which it begins, the part after it counts.', () => {
    const series = [seriesOf('per-ip', 'limited', 100)]
    const at = (now: number, from: number) =>
      rates({ ...stats, now, slots: [{ from, to: from + 10_000, series }] })
    const shares = [0, 50_000, 54_000, 60_000, 61_000, 67_500, 69_999, 70_000, 90_000].map(
      (ageMs) => [ageMs, Math.round(at(now + ageMs, now).requests)],
    )
    expect(shares).toEqual([
      [0, 100],
      [50_000, 100],
      [54_000, 100],
      [60_000, 100],
      [61_000, 90],
      [67_500, 25],
      [69_999, 0],
      [70_000, 0],
      [90_000, 0],
    ])
  })

  test('Policies that refuse now come first by their refusals, and those that do not are left out.', () => {
    expect(refusing(stats)).toEqual([
      { policy: 'per-ip', requests: 540, refused: 120 },
      { policy: 'login', requests: 36, refused: 36 },
      { policy: '', requests: 24, refused: 24 },
    ])
    const before = { ...stats, slots: stats.slots.slice(0, 1) }
    expect(refusing(before)).toEqual([])
  })

  test('The rate of an isolate that is younger than a minute is not extrapolated, and has no price.', () => {
    const young = { ...stats, total: { ...stats.total, from: now - 59_999 } }
    expect(rates(young)).toMatchObject({ requests: 600, commands: 2 })
    expect(rates(young).dollarsAMonth).toBeUndefined()
  })

  test('Few requests have no price, and no calls and commands a request.', () => {
    const series = [seriesOf('per-ip', 'allowed', 99)]
    const store = { ...stats.total.store, calls: 99, billedCommands: 396 }
    const few = { ...stats, total: { ...stats.total, series, store } }
    const unknown = { calls: undefined, commands: undefined, dollarsAMonth: undefined }
    expect(rates(few)).toMatchObject(unknown)
  })

  test('A store that bills no commands has no price.', () => {
    const store = { ...stats.total.store, calls: 0, billedCommands: 0 }
    const objects = { ...stats, total: { ...stats.total, store } }
    expect(rates(objects).dollarsAMonth).toBeUndefined()
  })

  test('The calls of operators are no part of a request, nor of the price.', () => {
    const { total } = stats
    const { calls, billedCommands } = total.store
    const operators = { calls: 5_000, billedCommands: 18_000 }
    const store = {
      ...total.store,
      ...{ calls: calls + 5_000, billedCommands: billedCommands + 18_000, operators },
    }
    expect(rates({ ...stats, total: { ...total, store } })).toEqual(rates(stats))
  })

  test('Without a decision the rates are 0, and a request has no calls, commands and price.', () => {
    const empty = { ...stats, slots: [], total: { ...stats.total, series: [] } }
    expect(rates(empty)).toEqual({
      requests: 0,
      refused: 0,
      calls: undefined,
      commands: undefined,
      dollarsAMonth: undefined,
    })
  })

  test('Requests of sluice verify are no requests of clients.', () => {
    const { total } = stats
    const { calls, billedCommands } = total.store
    const verified = seriesOf('checked', 'verified', 500)
    // They make calls as others do.
    const store = { ...total.store, calls: calls * 1.5, billedCommands: billedCommands * 1.5 }
    const more = { ...stats, total: { ...total, store, series: [...total.series, verified] } }
    expect(rates(more)).toEqual(rates(stats))
    expect(byPolicy(more.total.series)).toEqual(byPolicy(total.series))
  })

  test('The timeline has 60 slots of 10 s, with zeros for the slots without a decision.', () => {
    const { times, counts } = timeline(stats)
    expect(times).toHaveLength(60)
    expect([times[1]! - times[0]!, times.at(-1)]).toEqual([10, now / 1000])
    const busy = counts.flatMap(({ allowed }, n) => (allowed > 0 ? [[n, allowed]] : []))
    expect(busy).toEqual([
      [29, 280],
      [57, 350],
      [59, 70],
    ])
    expect(timeline(stats, 'minutes', 'login').counts[57]).toMatchObject({ allowed: 0, banned: 30 })
  })
})

test('Durations, bounds and shares read well.', () => {
  expect([20, 1500, 90_000, 3_600_000, null].map(durationText)).toEqual([
    '20 ms',
    '1.5 s',
    '1.5 min',
    '1 h',
    'never',
  ])
  expect([undefined, 5, Number.POSITIVE_INFINITY].map((ms) => boundText(ms, [5, 50]))).toEqual([
    '–',
    '≤ 5 ms',
    '> 50 ms',
  ])
  expect([shareText(1, 8), shareText(0, 0)]).toEqual(['12.5%', '–'])
  expect(rateText(1.5, 'a request')).toBe('1.5 a request')
  expect(rateText(undefined, 'a month', dollarText)).toBe('–')
})
