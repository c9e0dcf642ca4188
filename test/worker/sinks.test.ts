/** The sinks in workerd, with the Analytics Engine binding of Miniflare, which discards what it receives. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { analyticsReader } from '../../cli/dashboard/analytics.ts'
import type { DataPoint } from '../../src/features/observe/analytics.ts'
import { type RunningWorker, startWorker } from '../../tools/worker.ts'
import { type AnalyticsEngine, startAnalyticsEngine } from '../support/analytics-engine.ts'
import { bundled } from '../support/bundled.ts'
import { observedCounts } from '../support/observed-counts.ts'
import { startCollector } from '../support/otlp-collector.ts'

const METRICS = { type: 'analytics-engine-dataset', name: 'sluice_counts' }

let worker: RunningWorker
let engine: AnalyticsEngine
let collector: Awaited<ReturnType<typeof startCollector>>

beforeAll(async () => {
  engine = await startAnalyticsEngine()
  collector = await startCollector()
  worker = await startWorker(await bundled('test/worker/sinks-worker.ts'), {
    env: { COLLECTOR: collector.url },
    more: { config: {}, bindings: { METRICS } },
  })
})
afterAll(async () => {
  await worker?.stop()
  await collector?.stop()
  await engine?.stop()
})

test('Both sinks send the counts, and the dashboard reads them back.', async () => {
  const counts = observedCounts()
  const sent = await fetch(worker.url, { method: 'POST', body: JSON.stringify(counts) })
  const points = (await sent.json()) as DataPoint[]
  expect(points).toHaveLength(7)

  const [report] = collector.reports()
  const decisions = report!.metrics.get('sluice.decisions')!.points
  expect(decisions.map(({ value }) => value)).toEqual([120, 7, 3])

  const { writeDataPoint } = engine.startInvocation()
  for (const point of points) writeDataPoint(point)
  const problems: string[] = []
  const read = analyticsReader(engine.env, (text) => problems.push(text), engine.fetcher)!.counts
  const { series, offenders, store } = (await read())!.total
  expect(problems).toEqual([])
  expect({ series, offenders, store }).toMatchObject({
    series: counts.series,
    offenders: counts.offenders,
    store: counts.store,
  })
  expect(worker.logs).toEqual([])
})
