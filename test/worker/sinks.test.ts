/** The sinks in workerd, with the Analytics Engine binding of Miniflare, which discards what it receives. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { build } from '../../dev/build.ts'
import { type RunningWorker, startWorker } from '../../dev/worker.ts'
import type { DataPoint } from '../../src/features/observe/analytics.ts'
import type { Stats } from '../../src/features/observe/report.ts'
import { type AnalyticsEngine, startAnalyticsEngine } from '../support/analytics-engine.ts'
import { observedCounts } from '../support/observed-counts.ts'
import { startCollector } from '../support/otlp-collector.ts'

const METRICS = { type: 'analytics-engine-dataset', name: 'sluice_counts' }

let outdir: string
let worker: RunningWorker
let engine: AnalyticsEngine
let collector: Awaited<ReturnType<typeof startCollector>>

beforeAll(async () => {
  outdir = await mkdtemp(join(tmpdir(), 'sluice-'))
  await build(outdir, 'test/worker/sinks-worker.ts')
  engine = await startAnalyticsEngine()
  collector = await startCollector()
  worker = await startWorker(outdir, {
    env: { ...engine.env, COLLECTOR: collector.url },
    more: { config: {}, bindings: { METRICS } },
    async outbound({ url, method, headers, body }) {
      const options = { method, headers: [...headers], body, duplex: 'half', redirect: 'manual' }
      const reply = await engine.fetcher(url, options as RequestInit)
      return new Response(await reply.text(), { status: reply.status })
    },
  })
})
afterAll(async () => {
  await worker?.stop()
  await collector?.stop()
  await engine?.stop()
  await rm(outdir, { recursive: true })
})

test('Both sinks send the counts, and the Worker reads them back.', async () => {
  const counts = observedCounts()
  const sent = await fetch(worker.url, { method: 'POST', body: JSON.stringify(counts) })
  const points = (await sent.json()) as DataPoint[]
  expect(points).toHaveLength(7)

  const [report] = collector.reports()
  const decisions = report!.metrics.get('sluice.decisions')!.points
  expect(decisions.map(({ value }) => value)).toEqual([120, 7, 3])

  const { writeDataPoint } = engine.startInvocation()
  for (const point of points) writeDataPoint(point)
  // Many requests read at once, before the first result is there.
  const answers = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const response = await fetch(worker.url)
      expect(response.status).toBe(200)
      return (await response.json()) as { stats: Stats; logged: unknown[] }
    }),
  )
  for (const { stats, logged } of answers) {
    expect(logged).toEqual([])
    const { series, offenders, store } = stats.total
    expect({ series, offenders, store }).toMatchObject({
      series: counts.series,
      offenders: counts.offenders,
      store: counts.store,
    })
  }
  expect(worker.logs).toEqual([])
})
