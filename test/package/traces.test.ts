/** `observe({ to: 'trace' })` with the packages of OpenTelemetry, which Sluice does not import. */
import { expect, test } from 'vitest'
import { createConsumer } from './support/consumer.ts'

const SCRIPT = `
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor, TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import { createSluice } from 'sluice'
import { observe } from 'sluice/features'

const events = []
const sluice = createSluice({
  unconfigured: 'local',
  clientAddress: 'socket',
  deny: [{ name: 'bad', path: '/bad' }],
  policies: [
    { name: 'strict', limit: 40, window: '1h', match: { path: '/login' } },
    { name: 'wide', limit: 1000, window: '1h', accept: 'local-share' },
  ],
  use: [observe({ to: 'trace', onDecision: (event) => void events.push(event) })],
})

/** Decides requests, each in a span of its own. Returns what has no counterpart. */
async function run(sampler, count) {
  events.length = 0
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ sampler, spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracer = provider.getTracer('test')
  for (let n = 0; n < count; n += 1) {
    const url = 'https://www.example.com' + ['/', '/login', '/bad'][n % 3]
    const remoteAddress = '192.0.2.' + (n % 7)
    await tracer.startActiveSpan('request', async (span) => {
      await sluice.check(new Request(url), { remoteAddress })
      span.end()
    })
  }
  const key = (...parts) => parts.map((part) => part ?? '').join(' ')
  const counts = {}
  for (const { outcome, decidedBy, policy } of events) {
    const id = key(outcome, decidedBy, policy)
    counts[id] = (counts[id] ?? 0) + 1
  }
  const spans = exporter.getFinishedSpans()
  const traced = {}
  for (const { attributes } of spans) {
    const id = key(attributes['sluice.outcome'], attributes['sluice.decided_by'], attributes['sluice.policy'])
    traced[id] = (traced[id] ?? 0) + 1
  }
  const ids = new Set(spans.map((span) => span.spanContext().traceId))
  const known = events.filter((event) => event.traceId)
  return { counts, traced, spans: spans.length, known: known.length, strange: known.filter((event) => !ids.has(event.traceId)).length }
}

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
const all = await run(undefined, 10_000)
const none = await run(new TraceIdRatioBasedSampler(0), 100)
console.log(JSON.stringify({ all, none }))
`

test('Over 10,000 requests the attributes of spans have the counts of the events, and unsampled requests have none.', async () => {
  const project = await createConsumer({
    packages: [
      '@opentelemetry/api@1.9.0',
      '@opentelemetry/context-async-hooks@2.12.1',
      '@opentelemetry/sdk-trace-base@2.12.1',
    ],
    files: { 'package.json': '{ "type": "module" }', 'run.mjs': SCRIPT },
  })
  const { all, none } = JSON.parse((await project.node('run.mjs')).trim().split('\n').at(-1)!)
  expect(all.traced).toEqual(all.counts)
  expect(Object.keys(all.counts).length).toBeGreaterThan(2)
  expect(all).toMatchObject({ spans: 10_000, known: 10_000, strange: 0 })
  expect(none).toMatchObject({ spans: 0, known: 0 })
})
