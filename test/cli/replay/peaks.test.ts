/** The peaks of keys, and the limits that follow from them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { above, distributionOf, limitFor } from '../../../cli/replay/suggest/distribution.ts'
import { PeakCounter } from '../../../cli/replay/suggest/peak-counter.ts'
import type { State } from '../../../src/core/connection/algorithms/index.ts'
import { slidingWindow } from '../../../src/core/connection/algorithms/sliding-window.ts'

const START = Date.UTC(2026, 0, 1)
const requests = fc
  .array(
    fc.record({
      after: fc.oneof(fc.nat(40), fc.nat(3_000)),
      cost: fc.integer({ min: 1, max: 4 }),
      isKept: fc.boolean(),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((list) => {
    let time = START
    return list.map(({ after, cost, isKept }) => {
      time += after
      return { time, cost, kept: isKept ? cost : 0 }
    })
  })

/** The number of requests that the deployed sliding window refuses. */
function refusals(
  limit: number,
  windowMs: number,
  list: { time: number; cost: number; kept: number }[],
) {
  let state: State | undefined
  let refused = 0
  const terms = { limit, windowMs, burst: limit, align: 'first-request' } as const
  for (const { time, cost, kept } of list) {
    const outcome = slidingWindow(time, terms, cost, state)
    if (!outcome.allowed) refused += 1
    if (!outcome.state) continue
    const [current, previous] = outcome.state.numbers as [number, number]
    state = { ...outcome.state, numbers: [current - cost + kept, previous] }
  }
  return refused
}

describe('The peak of a key', () => {
  test('It is the smallest limit with which the deployed sliding window refuses nothing.', () => {
    fc.assert(
      fc.property(requests, fc.constantFrom(1_000, 1_500, 10_000), (list, windowMs) => {
        const counter = new PeakCounter([500, windowMs])
        for (const { time, cost, kept } of list) counter.charge('a', time, cost, kept)
        const [peak] = counter.sorted(windowMs) as unknown as [number]
        expect(refusals(peak, windowMs, list)).toBe(0)
        if (peak > 1) expect(refusals(peak - 1, windowMs, list)).toBeGreaterThan(0)
      }),
      { numRuns: 500 },
    )
  })

  test('Each of many keys has its own peak.', () => {
    const counter = new PeakCounter([1_000, 60_000])
    for (let key = 0; key < 10_000; key += 1) {
      for (let count = 0; count <= key % 3; count += 1) counter.charge(String(key), START, 1)
    }
    expect(counter.keys).toBe(10_000)
    const sorted = counter.sorted(60_000)
    expect([...new Set(sorted)]).toEqual([1, 2, 3])
    expect(above(sorted, 2)).toBe(3_333)
  })
})

describe('The limit for a share of the keys', () => {
  const peaks = fc
    .array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 200 })
    .map((list) => Uint32Array.from(list).sort())

  test('It refuses at most this share, and a smaller limit refuses more.', () => {
    fc.assert(
      fc.property(peaks, fc.integer({ min: 0, max: 999 }), (sorted, perMille) => {
        const most = Math.floor((perMille * sorted.length) / 1_000)
        const limit = limitFor(sorted, perMille / 1_000)
        expect(above(sorted, limit)).toBeLessThanOrEqual(most)
        expect(above(sorted, limit - 1)).toBeGreaterThan(most)
      }),
    )
  })

  test('The quantiles are those of the nearest rank.', () => {
    const sorted = Uint32Array.from({ length: 1_000 }, (_, index) => index + 1)
    expect(distributionOf(60_000, sorted)).toMatchObject({
      windowMs: 60_000,
      ...{ p50: 500, p90: 900, p99: 990, p999: 999, max: 1_000 },
    })
  })

  test('The curve decreases from the smallest limit to a limit that refuses nothing.', () => {
    fc.assert(
      fc.property(peaks, (sorted) => {
        const { curve } = distributionOf(1_000, sorted)
        for (const [index, { limit, keys }] of curve.entries()) {
          expect(keys).toBe(sorted.filter((peak) => peak > limit).length)
          if (index > 0) expect(limit).toBeGreaterThan(curve[index - 1]!.limit)
        }
        expect(curve[0]!.limit).toBe(1)
        expect(curve.at(-1)!.keys).toBe(0)
      }),
    )
  })
})
