/** The options of observe() from a decision to each destination, with real servers on loopback. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { DecisionFact } from '../../../../src/core/decide/observer.ts'
import type { Match } from '../../../../src/core/program/match.ts'
import type { DataPoint } from '../../../../src/features/observe/analytics.ts'
import * as destinations from '../../../../src/features/observe/destinations.ts'
import { observe } from '../../../../src/features/observe/index.ts'
import { createObserver, type Destinations } from '../../../../src/features/observe/observer.ts'
import { type ObserveOptions, parseOptions } from '../../../../src/features/observe/options.ts'
import { admitted, factOf, limitState, matchOf, refused } from '../../../support/facts.ts'
import { startCollector } from '../../../support/otlp-collector.ts'
import { type Receiver, SECRET, startReceiver } from '../../../support/webhook-receiver.ts'

let receiver: Receiver
let collector: Awaited<ReturnType<typeof startCollector>>
let lines: string[]
let background: Promise<unknown>[]
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  receiver = await startReceiver()
  collector = await startCollector()
  lines = []
  background = []
})
afterEach(async () => {
  vi.restoreAllMocks()
  vi.useRealTimers()
  await receiver.close()
  await collector.stop()
})

/** An observer that has no more destinations than a built configuration. */
function create(options: ObserveOptions) {
  const named = observe(options).built!.parts as (keyof Destinations)[]
  const needed = Object.fromEntries(named.map((name) => [name, destinations[name]]))
  return createObserver(parseOptions(options), needed, (event, code) => {
    lines.push(`${event} ${code}`)
  })
}

type ReportingObserver = ReturnType<typeof createObserver>

function decide(observer: ReportingObserver, fact: Partial<DecisionFact> = {}) {
  observer.decided(factOf({ waitUntil: (promise) => void background.push(promise), ...fact }))
}

const statsOf = (observer: ReportingObserver) => observer.statsOf({ health: () => ({}) })

test('A report goes to each destination of to, and all have the same counts.', async () => {
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  const points: DataPoint[] = []
  const env = { DATA: { writeDataPoint: (point: DataPoint) => void points.push(point) } }
  const observer = create({ to: ['log', 'analytics:DATA', `otlp:${collector.url}`], every: 20 })
  for (let n = 0; n < 3; n++) decide(observer, { env })
  vi.setSystemTime(Date.now() + 20)
  decide(observer, { env })
  await Promise.all(background)
  const line = JSON.parse(log.mock.calls[0]![0])
  expect(line).toMatchObject({ event: 'decisions', series: [{ policy: 'a', decisions: 4 }] })
  expect(points.find(({ blobs }) => blobs[0] === 'decisions')!.doubles[0]).toBe(4)
  const [report] = collector.reports()
  expect(report!.metrics.get('sluice.decisions')!.points.map(({ value }) => value)).toEqual([4])
  expect(statsOf(observer).dropped).toEqual({
    log: 0,
    'analytics:DATA': 0,
    [`otlp:${new URL(collector.url).host}`]: 0,
  })
  expect(lines).toEqual([])
})

/** A span as both APIs have it. */
function spanWith(isSampled: boolean) {
  const attributes: Record<string, unknown> = {}
  const span = {
    isTraced: isSampled,
    isRecording: () => isSampled,
    setAttributes: (more: object) => void Object.assign(attributes, more),
    spanContext: () => ({ traceId: '0af7651916cd43dd8448eb211c80319c' }),
  }
  return { attributes, span, tracing: { getActiveSpan: () => span } }
}

const ATTRIBUTES = {
  'sluice.outcome': 'limited',
  'sluice.decided_by': 'store',
  'sluice.policy': 'a',
  'sluice.remaining': 0,
  'sluice.store_ms': 7,
}
const refusal = { decision: refused, use: { ms: 7, calls: 1, billedCommands: 1 } }

test.each([
  ['the context of an invocation', (tracing: object) => ({ tracing })],
  ["Hono's context", (tracing: object) => ({ executionCtx: { tracing } })],
])('With trace the span of %s gets the decision, and the event the id of the trace.', (_, from) => {
  const events: unknown[] = []
  const observer = create({ to: 'trace', onDecision: (event) => events.push(event) })
  const { attributes, tracing } = spanWith(true)
  decide(observer, { ...refusal, context: from(tracing) })
  expect(attributes).toEqual(ATTRIBUTES)
  expect(events).toMatchObject([{ traceId: '0af7651916cd43dd8448eb211c80319c' }])
  expect(statsOf(observer).total.series).toMatchObject([{ policy: 'a', decisions: 1 }])
})

test('A request that is not sampled, has no span, or a context that throws gets no attributes.', () => {
  const events: object[] = []
  const observer = create({ to: 'trace', onDecision: (event) => events.push(event) })
  const { attributes, tracing } = spanWith(false)
  const outside = {
    get executionCtx(): never {
      throw new Error('This context has no ExecutionContext')
    },
  }
  for (const context of [{ tracing }, { tracing: {} }, outside, undefined, null, 'text'])
    decide(observer, { ...refusal, context })
  expect(attributes).toEqual({})
  expect(events.map((event) => 'traceId' in event)).not.toContain(true)
  expect(events).toHaveLength(6)
  expect(lines).toEqual([])
})

test('Without trace a span stays as it is.', () => {
  const { attributes, tracing } = spanWith(true)
  decide(create({ to: 'log' }), { ...refusal, context: { tracing } })
  expect(attributes).toEqual({})
})

test('A missing binding and a collector that fails lose their reports, with their codes.', async () => {
  collector.answer = (response) => response.writeHead(500).end()
  const observer = create({ to: ['analytics:DATA', `otlp:${collector.url}`], every: 20 })
  decide(observer)
  vi.setSystemTime(Date.now() + 20)
  decide(observer)
  await Promise.all(background)
  expect(lines.sort()).toEqual(['report-lost bad-status', 'report-lost not-configured'])
  expect(Object.values(statsOf(observer).dropped)).toEqual([1, 1])
})

test('A notice is sent once for each limit, threshold and window, also for a limit that does not bind.', async () => {
  const observer = create({ webhook: { url: receiver.url } })
  const limits = [
    limitState({ remaining: 2 }),
    limitState({ policy: 'b', limit: 100, remaining: 5 }),
    limitState({ policy: 'trial', mode: 'shadow', remaining: 0 }),
  ]
  const fact = {
    decision: { ...admitted, decidedAt: 1_789_000_000_000, limits },
    matches: [matchOf(), matchOf({ name: 'b', burst: 100 }), matchOf({ name: 'trial' })],
    env: { SLUICE_WEBHOOK_SECRET: SECRET },
  }
  for (let n = 0; n < 3; n++) decide(observer, fact)
  await Promise.all(background)
  const sent = receiver
    .notices()
    .map(({ policy, subject, threshold }) => [policy, subject, threshold])
  expect(sent.sort()).toEqual([
    ['a', 'hash of 203.0.113.7', 80],
    ['b', 'hash of 203.0.113.7', 80],
    ['b', 'hash of 203.0.113.7', 90],
  ])
  expect(statsOf(observer).dropped).toEqual({ webhook: 0 })
})

test.each([
  ['hashed', 'api-key', { 'api-key': 'd1ge57' }],
  ['plain', 'api-key', { 'api-key': 'd1ge57', ip: '203.0.113.7' }],
  ['hashed', 'header:x-user', undefined],
  ['plain', 'header:x-user', { 'header:x-user': 'd1ge57', ip: '203.0.113.7' }],
] as const)(
  'With subjects %s a notice names a customer by %s as %j, and its plan.',
  async (subjects, part, key) => {
    const observer = create({ subjects, webhook: { url: receiver.url, thresholds: [80] } })
    const decision = { ...admitted, decidedAt: 1, limits: [limitState({ remaining: 2 })] }
    const partitionKey = [
      [part, 'd1ge57'],
      ['ip', '203.0.113.7'],
      ['header:x-none', undefined],
    ] as Match['partitionKey']
    const matches = [matchOf({ planName: 'pro' }, { partitionKey })]
    decide(observer, { decision, matches, env: { SLUICE_WEBHOOK_SECRET: SECRET } })
    await expect.poll(() => receiver.notices()).toHaveLength(1)
    expect(receiver.notices()[0]).toMatchObject({ plan: 'pro', ...(key && { key }) })
    expect('key' in receiver.notices()[0]!).toBe(key !== undefined)
  },
)

test('A notice that the receiver rejects is counted.', async () => {
  receiver.answer = (response) => response.writeHead(400).end()
  const observer = create({ webhook: { url: receiver.url } })
  const decision = { ...admitted, decidedAt: 1, limits: [limitState({ remaining: 2 })] }
  decide(observer, { decision, env: { SLUICE_WEBHOOK_SECRET: SECRET } })
  await Promise.all(background)
  expect(statsOf(observer).dropped).toEqual({ webhook: 1 })
  expect(lines).toEqual(['webhook rejected'])
})
