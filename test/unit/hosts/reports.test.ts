/** The counts that an operator reads, after a load of known composition. T11 of SECURITY.md: they reveal no client, and only operators read them. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import type { LimitStatus } from '../../../src/core/base/decision.ts'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import type { Series, Stats } from '../../../src/features/observe/report.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import { API_TOKEN, apiOf, apiTokens, OPERATE } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'
import { parseOpenMetrics } from '../../support/open-metrics.ts'

const policy = { window: '1h', algorithm: 'fixed-window' } as const
const config: ConfigOptions = {
  clock: 'edge', // the bridge passes the time of the clock in any case
  deny: { name: 'abuse', ip: '192.0.2.66' },
  policies: [
    { ...policy, name: 'per-ip', limit: 10, penalty: 'manual', match: { path: '/a' } },
    { ...policy, name: 'ghost', limit: 1, mode: 'shadow', match: { path: '/ghost' } },
    { ...policy, name: 'keyed', limit: 1, key: 'header:x-key', match: { path: '/private' } },
  ],
}
const clock = new TestClock()
const gateway = useGateway({
  config,
  env: apiTokens,
  observe: { to: 'log', every: '1s' },
  clock,
})
const api = apiOf(gateway.fetch)

const statsOf = async ({ call } = api) =>
  (await call<Stats>('/stats', undefined, { token: OPERATE })).body
const metricsOf = async ({ call } = api) =>
  parseOpenMetrics((await call<string>('/metrics', undefined, { token: OPERATE })).body)
const nameOf = ({ policy, outcome, decidedBy }: Series) => `${policy} ${outcome} ${decidedBy}`
/** The decisions, the units and the decisions near the limit of each series. */
const seriesOf = ({ total }: Stats) =>
  Object.fromEntries(
    total.series.map((one) => [nameOf(one), [one.decisions, one.units, one.near]] as const),
  )

beforeAll(async () => {
  const times = async (count: number, path: string, ip: string) => {
    for (let time = 0; time < count; time++) await gateway.fetch(path, { ip })
  }
  await times(14, '/a', '203.0.113.1')
  await times(11, '/a', '203.0.113.2')
  await times(2, '/a', '203.0.113.3')
  await times(3, '/ghost', '203.0.113.3')
  await times(5, '/', '203.0.113.3')
  await times(4, '/a', '192.0.2.66')
  await api.decide({ policy: 'per-ip', key: '203.0.113.4', cost: 7 })
  await api.decideEach([
    { policy: 'per-ip', key: '203.0.113.4', cost: 2 },
    { policy: 'per-ip', key: '203.0.113.5', cost: 3 },
    { policy: 'per-ip', key: '203.0.113.5', mode: 'peek' },
  ])
  const auth = await api.call('/auth', undefined, {
    token: null,
    headers: {
      'Sluice-Token': API_TOKEN,
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Uri': '/a',
      'X-Forwarded-Host': 'www.example.com',
      'X-Forwarded-For': '203.0.113.5',
    },
  })
  expect(auth.status).toBe(200)
})

test('The stats equal the load, by policy, outcome and decider.', async () => {
  const stats = await statsOf()
  const { v, total, slots, fallbacks, dropped, circuit } = stats
  expect({ v, fallbacks, dropped, circuit }).toEqual({
    v: 1,
    fallbacks: 0,
    dropped: { log: 0 },
    circuit: 'closed',
  })
  expect(seriesOf(stats)).toEqual({
    ' allowed list': [5, 0, 0],
    'abuse denied list': [4, 0, 0],
    'ghost allowed store': [1, 1, 1],
    'ghost would-refuse store': [2, 2, 2],
    'per-ip allowed store': [26, 35, 7],
    'per-ip limited store': [5, 5, 5],
  })
  const inSlots = (name: 'decisions' | 'units') =>
    slots.flatMap(({ series }) => series).reduce((sum, one) => sum + one[name], 0)
  expect([inSlots('decisions'), inSlots('units')]).toEqual([43, 43])
  expect(total.offenders.map(({ refusals, error }) => [refusals, error])).toEqual([
    [4, 0],
    [1, 0],
  ])
})

test('The metrics equal the stats.', async () => {
  const { total } = await statsOf()
  const metrics = await metricsOf()
  const samples = (name: string) => metrics.get(name)!.samples
  expect(samples('sluice_decisions').map(({ labels, value }) => ({ ...labels, value }))).toEqual(
    total.series.map(({ policy, outcome, decidedBy, decisions }) => ({
      ...{ policy, outcome, decided_by: decidedBy },
      value: decisions,
    })),
  )
  const latency = samples('sluice_store_call_duration_seconds')
  expect(latency.find(({ name }) => name.endsWith('_count'))!.value).toBe(total.store.calls)
})

test('The calls and commands equal those of the database, and reading the counts makes none.', async () => {
  const bill = () => gateway.bridge.stats()[gateway.bridge.token]!
  const { http, commands } = bill()
  await metricsOf()
  const { calls, billedCommands, latency } = (await statsOf()).total.store
  expect([calls, billedCommands]).toEqual([http, commands])
  expect(latency.counts.reduce((sum, count) => sum + count, 0)).toBe(calls)
})

test('The calls of operators are counted apart from those for requests, refunds and decisions.', async () => {
  const key = '203.0.113.9'
  const target = { key }
  const bill = () => ({ ...gateway.bridge.stats()[gateway.bridge.token]! })
  let run = 0
  const operations = ['policies', 'peek', 'ban', 'unban', 'reset', 'peek decision'] as const
  const forRequests = ['request', 'decision', 'refund'] as const
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...operations, ...forRequests), { minLength: 1, maxLength: 8 }),
      async (actions) => {
        const isolate = gateway.start(
          { ...config, namespace: `apart${run++}` },
          { env: apiTokens, observe: {} },
        )
        const { operate, call, decide } = apiOf(isolate.fetch)
        const act = (action: (typeof actions)[number]) => {
          if (action === 'request') return isolate.fetch('/a', { ip: key })
          if (action === 'decision') return decide({ policy: 'per-ip', key })
          if (action === 'refund') return call('/refund', { policy: 'per-ip', key })
          if (action === 'peek decision') return decide({ policy: 'per-ip', key, mode: 'peek' })
          if (action === 'policies') return call('/policies', undefined, { token: OPERATE })
          return operate('per-ip', action, target)
        }
        const expected = { calls: 0, billedCommands: 0 }
        for (const action of actions) {
          const before = bill()
          await act(action)
          const after = bill()
          if (!(operations as readonly string[]).includes(action)) continue
          expected.calls += after.http - before.http
          expected.billedCommands += after.commands - before.commands
        }
        const { operators } = (await statsOf(apiOf(isolate.fetch))).total.store
        expect(operators ?? { calls: 0, billedCommands: 0 }).toEqual(expected)
      },
    ),
    { numRuns: 20 },
  )
})

test('The subject of the first offender is a target: a ban refuses this client only.', async () => {
  const { policy, subject } = (await statsOf()).total.offenders[0]!
  const banned = await api.operate<LimitStatus>(policy, 'ban', { subject, for: '2h' })
  expect(banned.body.limits).toMatchObject([{ policy: 'per-ip', bannedForMs: 7_200_000 }])
  const reasonOf = async (key: string) =>
    (await api.decide({ policy: 'per-ip', key, mode: 'peek' })).body.reason
  expect(await Promise.all(['1', '2', '3'].map((end) => reasonOf(`203.0.113.${end}`)))).toEqual([
    'banned',
    'limited',
    'within-limit',
  ])
  await api.operate(policy, 'unban', { subject })
  expect(await reasonOf('203.0.113.1')).not.toBe('banned')
})

test('The same requests make the same calls and commands without observe.', async () => {
  const plain = gateway.start({ ...config, namespace: 'plain' })
  const observed = gateway.start({ ...config, namespace: 'observed' }, { observe: {} })
  const spent: object[] = []
  for (const isolate of [plain, observed]) {
    const { http, commands } = gateway.bridge.stats()[gateway.bridge.token]!
    for (let n = 0; n < 13; n++) await isolate.fetch('/a')
    const after = gateway.bridge.stats()[gateway.bridge.token]!
    spent.push([after.http - http, after.commands - commands])
  }
  expect(spent[0]).toEqual(spent[1])
})

test('Without Redis, the counts show fallbacks, errors and the open circuit.', async () => {
  const isolate = gateway.start(
    { policies: [{ ...policy, name: 'per-ip', limit: 10, onStoreError: 'allow' }] },
    { env: { ...apiTokens, UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9' }, observe: {} },
  )
  const down = apiOf(isolate.fetch)
  let sent = 0
  // The circuit stays open for a second only.
  const [{ fallbacks, total }, metrics] = await vi.waitFor(
    async () => {
      for (let time = 0; time < 12; time++, sent++) await isolate.fetch('/')
      const read = [await statsOf(down), await metricsOf(down)] as const
      expect(read[0].circuit).toBe('open')
      expect(read[1].get('sluice_circuit_open')!.samples[0]!.value).toBe(1)
      return read
    },
    { timeout: 10_000 },
  )
  expect(fallbacks).toBe(sent)
  expect(total.series).toMatchObject([
    { policy: 'per-ip', outcome: 'store-error', decisions: sent, units: sent },
  ])
  expect(total.store.errors).toEqual({ unreachable: total.store.calls })
  expect(metrics.get('sluice_fallbacks')!.samples[0]!.value).toBe(sent)
  expect(metrics.get('sluice_store_errors')!.samples).toMatchObject([
    { labels: { code: 'unreachable' }, value: total.store.calls },
  ])
})

describe('T11: observation', () => {
  /** The parts of the requests that must not leave the Worker. */
  const PRIVATE = /198\.51\.100|2001:db8|key-of-a-client|private|agent-of-a-client/
  const linesOf = () =>
    gateway.logs.filter((line) => line.includes('"decisions"')).map((line) => JSON.parse(line))

  test('T11: A line of the log has the counts since the previous one, and nothing of a request.', async () => {
    const ask = async (ip: string) => {
      const headers = { 'X-Key': 'key-of-a-client', 'User-Agent': 'agent-of-a-client' }
      await gateway.fetch('/private?q=1', { ip, headers })
      await gateway.settled()
    }
    clock.advance(1_000)
    await ask('198.51.100.7') // sends what was counted before
    clock.advance(1_000)
    await ask('2001:db8::7')
    const before = linesOf().length
    for (let n = 0; n < 3; n++) await ask('198.51.100.7')
    expect(linesOf()).toHaveLength(before)
    clock.advance(1_000)
    await ask('198.51.100.7')
    const line = linesOf()[before]
    expect(linesOf()).toHaveLength(before + 1)
    expect(line.series).toMatchObject([
      { policy: 'keyed', outcome: 'limited', decidedBy: 'cache', decisions: 4 },
    ])
    expect(gateway.logs.join('\n')).not.toMatch(PRIVATE)
    const { offenders } = (await statsOf()).total
    for (const { subject } of offenders) expect(subject).toMatch(/^[\w-]{16}$/)
    expect(
      linesOf()
        .map((one) => JSON.stringify(one))
        .join(),
    ).toContain(offenders[0]!.subject)
  })

  test.each(['/stats', '/metrics'])(
    'T11: GET %s needs an operator token and observe, and contains nothing of a request.',
    async (path) => {
      const read = (token: string | null) => api.call<string>(path, undefined, { token })
      expect((await read(null)).status).toBe(401)
      expect((await read('a-token-of-nobody-0000')).status).toBe(401)
      expect((await read(API_TOKEN)).status).toBe(403)
      const { status, headers, body } = await read(OPERATE)
      expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
      expect(JSON.stringify(body)).toContain('per-ip')
      expect(JSON.stringify(body)).not.toMatch(PRIVATE)
      const plain = apiOf(gateway.start(config, { env: apiTokens }).fetch)
      const missing = await plain.call(path, undefined, { token: OPERATE })
      expect(missing).toMatchObject({
        status: 404,
        body: { detail: 'Nothing is counted. Add observe() to use.' },
      })
      expect((await plain.call(path, undefined, { token: API_TOKEN })).status).toBe(403)
    },
  )
})
