import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  analyticsSink,
  type DataPoint,
  dataPointsOf,
} from '../../../../src/features/observe/analytics.ts'
import { deciders, outcomes } from '../../../../src/features/observe/event.ts'
import type { Counts, Series } from '../../../../src/features/observe/report.ts'
import { type AnalyticsEngine, startAnalyticsEngine } from '../../../support/analytics-engine.ts'
import { anyCharacter } from '../../../support/any-text.ts'
import { noCounts, observedCounts, oneSeries } from '../../../support/observed-counts.ts'

let engine: AnalyticsEngine
beforeAll(async () => {
  engine = await startAnalyticsEngine()
})
afterAll(() => engine.stop())

/** Writes counts to a dataset that checks the documented limits. */
async function write(counts: Counts): Promise<DataPoint[]> {
  const { writeDataPoint } = engine.startInvocation()
  const points: DataPoint[] = []
  const METRICS = {
    writeDataPoint(point: DataPoint) {
      writeDataPoint(point)
      points.push(point)
    },
  }
  await analyticsSink('METRICS').send(counts, { METRICS })
  return points
}

const ofKind = (points: DataPoint[], kind: string) =>
  points.filter(({ blobs }) => blobs[0] === kind)
const manySeries = (length: number, change: (index: number) => Partial<Series>) =>
  Array.from({ length }, (_, index) => oneSeries(change(index)))

describe('the data points of a flush', () => {
  test('A flush writes the documented columns.', async () => {
    expect(await write(observedCounts())).toEqual([
      {
        indexes: [''],
        blobs: ['store', '', '', '', '', '5,10,50'],
        doubles: [100, 302, 812.5, 60, 30, 9, 1],
      },
      { indexes: [''], blobs: ['store', '', 'timeout'], doubles: [2] },
      { indexes: ['api'], blobs: ['offender', 'api', '', '', 'AbCdEfGh01234567'], doubles: [5, 1] },
      { indexes: ['api'], blobs: ['offender', 'api', '', '', 'zzzzzzzzzzzzzzzz'], doubles: [2, 0] },
      {
        indexes: ['api'],
        blobs: ['decisions', 'api', 'allowed', 'store'],
        doubles: [120, 240, 12],
      },
      { indexes: ['api'], blobs: ['decisions', 'api', 'limited', 'cache'], doubles: [7, 14, 7] },
      { indexes: [''], blobs: ['decisions', '', 'allowed', 'list'], doubles: [3, 0, 0] },
    ])
  })

  test('A flush without counts writes nothing.', async () => {
    expect(await write(noCounts())).toEqual([])
  })

  test('A missing binding is an error that says what to add.', async () => {
    const sink = analyticsSink('METRICS')
    await expect(sink.send(observedCounts(), {})).rejects.toThrow(
      'no dataset METRICS: add a binding with this name to analytics_engine_datasets in the wrangler configuration',
    )
    expect(sink.name).toBe('analytics:METRICS')
  })
})

describe('a flush that does not fit into 25 points', () => {
  test('The largest series keep their names, and the others are merged by outcome and decider.', async () => {
    const series = [
      ...manySeries(40, (index) => ({ policy: `p${index}`, decisions: 1000 - index, near: 1 })),
      ...manySeries(40, (index) => ({ policy: `p${index}`, outcome: 'limited', decisions: 1 })),
    ]
    const points = await write(noCounts({ series }))
    expect(points).toHaveLength(25)
    expect(points[0]).toMatchObject({ blobs: ['decisions', 'p0', 'allowed', 'store'] })
    expect(points[22]).toMatchObject({ blobs: ['decisions', 'p22', 'allowed', 'store'] })
    expect(points.slice(23)).toEqual([
      {
        indexes: ['(other)'],
        blobs: ['decisions', '(other)', 'allowed', 'store'],
        doubles: [16_473, 17, 17],
      },
      {
        indexes: ['(other)'],
        blobs: ['decisions', '(other)', 'limited', 'store'],
        doubles: [40, 40, 0],
      },
    ])
  })

  test('Only the 8 clients with the most refusals are written.', async () => {
    const offenders = Array.from({ length: 200 }, (_, index) => ({
      policy: `p${index % 3}`,
      subject: `s${index}`,
      refusals: index,
      error: 0,
    }))
    const points = ofKind(await write(observedCounts({ offenders })), 'offender')
    expect(points.map(({ doubles }) => doubles[0])).toEqual([
      199, 198, 197, 196, 195, 194, 193, 192,
    ])
  })

  test('The rarest error codes are merged.', async () => {
    const errors = {
      timeout: 9,
      unreachable: 8,
      internal: 7,
      'bad-reply': 6,
      'redis-error': 2,
      x: 1,
    }
    const points = await write(noCounts({ store: { ...noCounts().store, errors } }))
    expect(points.map(({ blobs, doubles }) => [blobs[2], ...doubles])).toEqual([
      ['timeout', 9],
      ['unreachable', 8],
      ['internal', 7],
      ['bad-reply', 6],
      ['other', 3],
    ])
  })
})

test('Any counts stay within the limits and keep the totals of each outcome.', async () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 40 }),
    fc.constantFrom('', 'api', 'x'.repeat(9000), '🐟'.repeat(900), '\uD83D'.repeat(900)),
  )
  const count = fc.nat(1_000_000)
  const anySeries = fc.record({
    policy: text,
    outcome: fc.constantFrom(...outcomes),
    decidedBy: fc.constantFrom(...deciders),
    decisions: count,
    units: count,
    near: count,
  })
  const anyCounts = fc.record({
    series: fc.array(anySeries, { maxLength: 60, size: 'max' }),
    offenders: fc.array(fc.record({ policy: text, subject: text, refusals: count, error: count }), {
      maxLength: 20,
      size: 'max',
    }),
    errors: fc.dictionary(fc.string(), count, { maxKeys: 12 }),
  })
  await fc.assert(
    fc.asyncProperty(anyCounts, async ({ series, offenders, errors }) => {
      const store = { ...observedCounts().store, errors }
      const counts = observedCounts({ series, offenders, store })
      expect(dataPointsOf(counts).length).toBeLessThanOrEqual(25)
      const points = await write(counts)
      for (const outcome of outcomes) {
        const sent = series.filter((one) => one.outcome === outcome && one.decisions > 0)
        const written = ofKind(points, 'decisions').filter(({ blobs }) => blobs[2] === outcome)
        for (const [index, field] of (['decisions', 'units', 'near'] as const).entries()) {
          expect(written.reduce((sum, { doubles }) => sum + doubles[index]!, 0)).toBe(
            sent.reduce((sum, one) => sum + one[field], 0),
          )
        }
      }
    }),
    { numRuns: 20 },
  )
})

test('A long name is cut between two characters.', () => {
  const policy = '🐟'.repeat(500)
  const [point] = dataPointsOf(noCounts({ series: [oneSeries({ policy })] }))
  expect(point!.indexes).toEqual(['🐟'.repeat(24)])
  expect(point!.blobs[1]).toBe('🐟'.repeat(200))
})
