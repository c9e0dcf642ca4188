import { describe, expect, test } from 'vitest'
import { byPolicy, quantile, rates, timeline } from '../../cli/dashboard/page/figures.ts'
import { boundText, durationText, shareText } from '../../cli/dashboard/page/text.ts'
import { statsAt } from '../support/dashboard-stats.ts'

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
    const { perSecond, refused, calls, commands, dollarsAMonth } = rates(stats)
    expect(perSecond).toBe(10) // 600 requests in 60 s
    expect(refused).toBeCloseTo(0.3)
    expect([calls, commands]).toEqual([0.5, 2])
    expect(dollarsAMonth).toBeCloseTo(10 * 2 * 86_400 * 30 * (0.2 / 100_000))
  })

  test('The rate of an isolate that is younger than a minute is that of its lifetime.', () => {
    const young = { ...stats, total: { ...stats.total, from: now - 30_000 } }
    expect(rates(young).perSecond).toBe(20)
  })

  test('Without a decision every rate is 0.', () => {
    const empty = { ...stats, slots: [], total: { ...stats.total, series: [] } }
    expect(rates(empty)).toEqual({
      perSecond: 0,
      refused: 0,
      calls: 0,
      commands: 0,
      dollarsAMonth: 0,
    })
  })

  test('Requests of sluice verify are no requests of clients.', () => {
    const [one] = stats.total.series
    const verified = { ...one!, policy: 'checked', outcome: 'verified', decisions: 500 } as const
    const { total } = stats
    const more = { ...stats, total: { ...total, series: [...total.series, verified] } }
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
    expect(timeline(stats, 'login').counts[57]).toMatchObject({ allowed: 0, banned: 30 })
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
})
