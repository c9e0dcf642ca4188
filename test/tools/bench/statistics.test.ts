import { describe, expect, test } from 'vitest'
import { createRandom } from '../../../tools/bench/random.ts'
import { poisson } from '../../../tools/bench/stack/load/schedule.ts'
import { added, failures, figure, pooled, ratio } from '../../../tools/bench/stack/results.ts'
import { median, quantile, spread } from '../../../tools/bench/statistics.ts'
import { sample } from './samples.ts'

test.each([
  [[5], 0.5, 5],
  [[5], 0.999, 5],
  [[3, 1, 2, 4], 0.5, 2],
  [[3, 1, 2, 4], 0.75, 3],
  [Array.from({ length: 1000 }, (_, n) => 1000 - n), 0.99, 990],
  [Array.from({ length: 1000 }, (_, n) => n + 1), 0.999, 999],
])('A quantile is one of the values: %j at %d.', (values, share, expected) => {
  expect(quantile(values, share)).toBe(expected)
})

test('A spread has the median and the middle half.', () => {
  expect(spread([3, 1, 8, 100, 2])).toEqual({ median: 3, low: 2, high: 8 })
  expect(spread([7])).toEqual({ median: 7, low: 7, high: 7 })
  expect(median([1, 2, 3, 10])).toBe(2.5)
})

describe('a Poisson schedule', () => {
  const times = poisson(1500, 60_000, createRandom(7))

  test('A Poisson schedule has the expected number of requests.', () => {
    // Five standard deviations of a Poisson distribution with mean 90,000.
    expect(Math.abs(times.length - 90_000)).toBeLessThan(1500)
  })

  test('A Poisson schedule is sorted and stays within its duration.', () => {
    expect(times.every((time, n) => n === 0 || time >= times[n - 1]!)).toBe(true)
    expect(times[0]).toBeGreaterThanOrEqual(0)
    expect(times.at(-1)).toBeLessThan(60_000)
  })

  test('In a Poisson schedule the share of gaps longer than the mean is e⁻¹.', () => {
    const gaps = times.slice(1).map((time, n) => time - times[n]!)
    const long = gaps.filter((gap) => gap > 1000 / 1500).length / gaps.length
    expect(long).toBeCloseTo(Math.exp(-1), 1)
  })

  test('A Poisson schedule accepts a random number of 0.', () => {
    expect(poisson(1, 100, () => 1 - Number.EPSILON)).toEqual([])
    let remaining = 3
    expect(poisson(1, 100, () => (remaining-- > 0 ? 0 : 0.999))).toHaveLength(3)
  })
})

describe('the comparison of variants', () => {
  const samples = {
    bare: [sample({ workerUs: 100, p50: 10 }), sample({ workerUs: 200, p50: 20 })],
    ours: [sample({ workerUs: 150, p50: 11 }), sample({ workerUs: 210, p50: 20.5 })],
  }

  test('Variants are compared in each round, not by their medians.', () => {
    expect(ratio(samples, 'ours', 'bare', ({ workerUs }) => workerUs)).toEqual({
      median: 1.275,
      low: 1.05,
      high: 1.5,
    })
    expect(added(samples, 'ours', 'bare', ({ p50 }) => p50)?.median).toBe(0.75)
    expect(figure(samples, 'ours', ({ billed }) => billed)?.median).toBe(4)
  })

  test('A comparison with a variant that was not measured is undefined.', () => {
    expect(ratio(samples, 'hono', 'bare', ({ workerUs }) => workerUs)).toBeUndefined()
    expect(ratio(samples, 'ours', 'hono', ({ workerUs }) => workerUs)).toBeUndefined()
    expect(figure(samples, 'ours', () => undefined)).toBeUndefined()
  })

  test('High quantiles use the requests of all rounds together.', () => {
    const rounds = [[1, 2], [9]].map((values) => sample({ latencies: Float64Array.from(values) }))
    expect(pooled(rounds, 0.999)).toBe(9)
  })

  test('Requests that are neither admitted nor refused count as failures.', () => {
    expect(failures([sample({ statuses: { 200: 5, 429: 3, 500: 2, 0: 1 } }), sample()])).toBe(3)
  })
})
