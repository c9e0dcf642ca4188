import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type AllCounts,
  type AnalyticsReader,
  analyticsReader,
} from '../../cli/dashboard/analytics.ts'
import { analyticsSink, dataPointsOf } from '../../src/features/observe/analytics.ts'
import type { Counts } from '../../src/features/observe/report.ts'
import { type AnalyticsEngine, startAnalyticsEngine } from '../support/analytics-engine.ts'
import { noCounts, observedCounts, oneSeries } from '../support/observed-counts.ts'

const NOON = Date.UTC(2026, 10, 20, 12, 0, 5)

let engine: AnalyticsEngine
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOON })
  engine = await startAnalyticsEngine()
})
afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await engine.stop()
})

const tell = vi.fn()
let reader: AnalyticsReader
let read: () => Promise<AllCounts | undefined>
beforeEach(() => {
  tell.mockClear()
  reader = analyticsReader(engine.env, tell, engine.fetcher)!
  read = reader.counts
})

/** An isolate flushes counts. */
async function flush(counts: Counts) {
  await analyticsSink('METRICS').send(counts, { METRICS: engine.startInvocation() })
}

describe('the counts of all isolates', () => {
  test('The counts of two isolates are added up.', async () => {
    await flush(observedCounts())
    await flush(observedCounts())
    const { series, offenders, store } = observedCounts()
    const twice = <Counted extends object>(counted: Counted) =>
      Object.fromEntries(
        Object.entries(counted).map(([key, value]) => [
          key,
          typeof value === 'number' ? 2 * value : value,
        ]),
      )
    expect(await read()).toEqual({
      now: NOON,
      total: {
        from: Date.UTC(2026, 10, 20),
        to: NOON,
        series: series.map(twice),
        offenders: offenders.map(twice),
        store: {
          calls: 200,
          billedCommands: 604,
          errors: { timeout: 4 },
          latency: { bounds: store.latency.bounds, counts: [120, 60, 18, 2], sum: 1625 },
        },
      },
      slots: [{ from: NOON - 5000, to: NOON + 5000, series: series.map(twice) }],
      fallbacks: 0,
      lastMinute: {
        decisions: 2 * series.reduce((sum, { decisions }) => sum + decisions, 0),
        fallbacks: 0,
      },
    })
    expect(tell).not.toHaveBeenCalled()
  })

  test('A longer range has its own slots, and a query that is kept as the counts are.', async () => {
    await flush(observedCounts())
    const { series } = observedCounts()
    const slotMs = 10_800_000
    const from = Math.floor(NOON / slotMs) * slotMs
    expect(await reader.history('week')).toEqual({
      since: from - 55 * slotMs,
      slots: [{ from, to: from + slotMs, series }],
    })
    const asked = engine.queries.length
    await reader.history('week')
    expect(engine.queries).toHaveLength(asked)
    await reader.history('hour')
    expect(engine.queries).toHaveLength(asked + 1)
  })

  test('A dataset without points has no counts.', async () => {
    expect(await read()).toMatchObject({
      total: {
        series: [],
        offenders: [],
        store: { calls: 0, errors: {}, latency: { bounds: [], counts: [0], sum: 0 } },
      },
      slots: [],
    })
  })

  test('The totals begin at midnight UTC, and the slots 10 minutes ago.', async () => {
    for (const [at, decisions] of [
      [Date.UTC(2026, 10, 19, 23, 59, 59), 1],
      [Date.UTC(2026, 10, 20), 10],
      [NOON - 606_000, 100],
      [NOON - 605_000, 1000],
      [NOON - 9000, 10_000],
      [NOON, 100_000],
    ] as const) {
      vi.setSystemTime(at)
      await flush(noCounts({ series: [oneSeries({ decisions })] }))
    }
    const { total, slots } = (await read())!
    expect(total.series).toMatchObject([{ decisions: 111_110 }])
    expect(slots.map(({ from, to, series }) => [from, to, series[0]!.decisions])).toEqual([
      [NOON - 605_000, NOON - 595_000, 1000],
      [NOON - 15_000, NOON - 5000, 10_000],
      [NOON - 5000, NOON + 5000, 100_000],
    ])
  })

  test('A point that stands for ten points counts ten times.', async () => {
    engine.sampleInterval = 10
    await flush(observedCounts())
    const { total, slots } = (await read())!
    expect(total.series[0]).toMatchObject({ decisions: 1200, units: 2400, near: 120 })
    expect(total.offenders[0]).toMatchObject({ refusals: 50, error: 10 })
    expect(total.store).toMatchObject({ calls: 1000, errors: { timeout: 20 } })
    expect(total.store.latency).toMatchObject({ counts: [600, 300, 90, 10], sum: 8125 })
    expect(slots[0]!.series[0]).toMatchObject({ decisions: 1200 })
  })

  test('Numbers that the API writes as text are numbers.', async () => {
    await flush(observedCounts())
    const first = (await read())!
    engine.numbersAsText = true
    vi.setSystemTime(NOON + 15_000)
    const second = (await read())!
    expect(second.now).toBe(NOON + 15_000)
    expect(second.slots).toEqual(first.slots)
    expect(second.total).toEqual({ ...first.total, to: NOON + 15_000 })
  })

  test('Store errors are fallbacks.', async () => {
    const outcome = 'store-error'
    const series = [
      oneSeries({ outcome, decidedBy: 'local', decisions: 3 }),
      oneSeries({ outcome, decidedBy: 'list', decisions: 4 }),
      oneSeries({ decisions: 50 }),
    ]
    await flush(noCounts({ series }))
    expect((await read())!.fallbacks).toBe(7)
  })

  test('Durations in other buckets are counted in the next bucket that is not lower.', async () => {
    const usage = (calls: number, bounds: number[], counts: number[]) =>
      noCounts({ store: { ...noCounts().store, calls, latency: { bounds, counts, sum: 1 } } })
    await flush(usage(9, [10, 20], [2, 3, 4]))
    await flush(usage(5, [5, 15, 99], [1, 1, 1, 2]))
    expect((await read())!.total.store).toMatchObject({
      calls: 14,
      latency: { bounds: [10, 20], counts: [3, 4, 7], sum: 2 },
    })
  })

  test('A row with words of another version is left out.', async () => {
    const { writeDataPoint } = engine.startInvocation()
    const [point] = dataPointsOf(noCounts({ series: [oneSeries()] }))
    for (const words of [
      ['delayed', 'store'],
      ['allowed', 'oracle'],
    ]) {
      writeDataPoint({ ...point!, blobs: ['decisions', 'api', ...words] })
    }
    writeDataPoint({ ...point!, blobs: ['another-kind', 'api', 'allowed', 'store'] })
    writeDataPoint(point!)
    const { total, slots } = (await read())!
    expect(total.series).toEqual([oneSeries()])
    expect(slots[0]!.series).toEqual([oneSeries()])
  })

  test('Names of any characters are read unchanged, and none is in a query.', async () => {
    const subject = `'); DROP TABLE sluice_counts; --"\\ 🐟`
    const offenders = [{ policy: "x' OR 1=1", subject, refusals: 1, error: 0 }]
    await flush(noCounts({ offenders, series: [oneSeries({ policy: "x' OR 1=1" })] }))
    const { total } = (await read())!
    expect(total.offenders).toEqual(offenders)
    expect(total.series).toEqual([oneSeries({ policy: "x' OR 1=1" })])
    expect(engine.queries.join()).not.toMatch(/DROP|1=1/)
  })
})

describe('the cache', () => {
  test('A result is kept for 15 seconds. A read is three queries.', async () => {
    const first = await read()
    await flush(observedCounts())
    vi.setSystemTime(NOON + 14_999)
    expect(await read()).toBe(first)
    expect(engine.queries).toHaveLength(3)
    vi.setSystemTime(NOON + 15_000)
    expect((await read())!.total.series).toHaveLength(3)
    expect(engine.queries).toHaveLength(6)
  })

  test('A failure is kept for 15 seconds and told once.', async () => {
    engine.answer = (response) => response.writeHead(500).end()
    expect(await read()).toBeUndefined()
    engine.answer = undefined
    expect(await read()).toBeUndefined()
    expect(tell).toHaveBeenCalledTimes(1)
    vi.setSystemTime(NOON + 15_000)
    expect(await read()).toBeDefined()
  })
})

describe('a read that fails', () => {
  test.each(['CLOUDFLARE_ACCOUNT_ID', 'CLOUDFLARE_API_TOKEN', 'SLUICE_ANALYTICS_DATASET'])(
    'Without %s nothing is read.',
    (name) => {
      const env = { ...engine.env, [name]: undefined }
      expect(analyticsReader(env, tell, engine.fetcher)).toBeUndefined()
    },
  )

  test.each(['x"; SELECT 1', "x'", 'x y', 'x\n', 'x;'])(
    'The dataset name "%s" is not put into a query.',
    async (SLUICE_ANALYTICS_DATASET) => {
      const env = { ...engine.env, SLUICE_ANALYTICS_DATASET }
      expect(await analyticsReader(env, tell, engine.fetcher)!.counts()).toBeUndefined()
      expect(engine.queries).toEqual([])
      expect(tell.mock.lastCall![0]).toContain('SLUICE_ANALYTICS_DATASET: expected letters')
    },
  )

  test.each([
    [403, '', 'the server answered 403'],
    [200, '<html>', 'the answer has no rows'],
    [200, '{"data":{}}', 'the answer has no rows'],
    [200, 'null', 'the answer has no rows'],
  ])('The answer %i "%s" is told: %s.', async (status, body, message) => {
    engine.answer = (response) => response.writeHead(status).end(body)
    expect(await read()).toBeUndefined()
    expect(tell).toHaveBeenCalledWith(`The counts of all isolates cannot be read: ${message}`)
  })

  test('A redirect is not followed, because the request has a token.', async () => {
    engine.answer = (response) => response.writeHead(307, { location: '/elsewhere' }).end()
    expect(await read()).toBeUndefined()
    expect(tell.mock.lastCall![0]).toMatch(/the server answered 307$/)
  })

  test('An API that hangs is given up after the deadline.', async () => {
    const { timeout } = AbortSignal
    const deadline = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(50))
    engine.answer = () => {}
    expect(await read()).toBeUndefined()
    expect(deadline).toHaveBeenCalledWith(5000)
    expect(tell.mock.lastCall![0]).toMatch(/did not answer within 5000 ms$/)
  })

  test('Rows of unexpected values have no effect.', async () => {
    const row = { kind: 'store', outcome: '', bounds: 'a,b', d1: 'x', d4: null }
    engine.answer = (response) => response.end(JSON.stringify({ data: [{}, row, { d1: {} }] }))
    const { total, slots } = (await read())!
    expect(total.series).toEqual([])
    expect(total.store).toMatchObject({ calls: 0, billedCommands: 0, latency: { bounds: [] } })
    expect(slots).toEqual([])
  })

  test('The message has neither the token nor the answer.', async () => {
    engine.answer = (response) => response.writeHead(400).end('secret-answer')
    await read()
    expect(JSON.stringify(tell.mock.calls)).not.toMatch(/secret/)
  })
})
