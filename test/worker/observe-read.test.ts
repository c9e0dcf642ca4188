/** The counts that an operator reads, after a load of known composition, on the Worker in workerd and a real Redis. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { LimitStatus } from '../../src/base/decision.ts'
import type { Series, Stats } from '../../src/observe/report.ts'
import { type Api, OPERATE, startApi } from '../support/api-stack.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'

const policy = { window: '1h', algorithm: 'fixed-window' } as const
const statsOf = async (api: Api) =>
  (await api.call<Stats>('/stats', undefined, { token: OPERATE })).body
const metricsOf = async (api: Api) =>
  parseOpenMetrics((await api.call<string>('/metrics', undefined, { token: OPERATE })).body)
const byName = (one: Series, other: Series) =>
  JSON.stringify([one.policy, one.outcome, one.decidedBy]) <
  JSON.stringify([other.policy, other.outcome, other.decidedBy])
    ? -1
    : 1

describe('the counts after a load', () => {
  let api: Api
  beforeAll(async () => {
    api = await startApi(
      {
        denialCache: false,
        deny: { name: 'abuse', ip: '192.0.2.66' },
        policies: [
          { ...policy, name: 'per-ip', limit: 10, penalty: 'manual', match: { path: '/a' } },
          { ...policy, name: 'ghost', limit: 1, mode: 'shadow', match: { path: '/ghost' } },
        ],
      },
      {},
      { observe: {} },
    )
    const times = async (count: number, path: string, ip: string) => {
      for (let time = 0; time < count; time++) await api.stack.fetch(path, { ip })
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
    ])
  })
  afterAll(() => api?.stop())

  test('The stats equal the load, by policy, outcome and decider.', async () => {
    const { v, source, total, slots, fallbacks, dropped, databases } = await statsOf(api)
    expect({ v, source, fallbacks, dropped, databases }).toEqual({
      v: 1,
      source: 'isolate',
      fallbacks: 0,
      dropped: {},
      databases: [{ circuit: 'closed' }],
    })
    const expected = [
      { policy: '', outcome: 'allowed', decidedBy: 'list', decisions: 5, units: 0, near: 0 },
      { policy: 'abuse', outcome: 'denied', decidedBy: 'list', decisions: 4, units: 0, near: 0 },
      {
        ...{ policy: 'ghost', outcome: 'allowed', decidedBy: 'store' },
        ...{ decisions: 1, units: 1, near: 1 },
      },
      {
        ...{ policy: 'ghost', outcome: 'would-refuse', decidedBy: 'store' },
        ...{ decisions: 2, units: 2, near: 2 },
      },
      {
        ...{ policy: 'per-ip', outcome: 'allowed', decidedBy: 'store' },
        ...{ decisions: 25, units: 34, near: 7 },
      },
      {
        ...{ policy: 'per-ip', outcome: 'limited', decidedBy: 'store' },
        ...{ decisions: 5, units: 5, near: 5 },
      },
    ]
    expect(total.series.sort(byName)).toEqual(expected)
    const inSlots = (name: 'decisions' | 'units') =>
      slots.flatMap(({ series }) => series).reduce((sum, one) => sum + one[name], 0)
    expect([inSlots('decisions'), inSlots('units')]).toEqual([42, 42])
    expect(total.offenders.map(({ refusals, error }) => [refusals, error])).toEqual([
      [4, 0],
      [1, 0],
    ])
  })

  test('The metrics equal the stats.', async () => {
    const { total } = await statsOf(api)
    const metrics = await metricsOf(api)
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

  test('The calls to the store equal the requests that the database received.', async () => {
    const { total } = await statsOf(api)
    expect(total.store.calls).toBe(api.stack.httpRequests())
    expect(total.store.latency.counts.reduce((sum, count) => sum + count, 0)).toBe(
      total.store.calls,
    )
    expect(total.store.billedCommands).toBeGreaterThan(total.store.calls)
  })

  test('Reading the counts makes no call to the store.', async () => {
    const before = api.stack.httpRequests()
    await statsOf(api)
    await metricsOf(api)
    expect(api.stack.httpRequests()).toBe(before)
  })

  test('The subject of the first offender is a target: a ban refuses this client only.', async () => {
    const { total } = await statsOf(api)
    const { policy, subject } = total.offenders[0]!
    const target = { subject, for: '2h' }
    const banned = await api.operate<LimitStatus>(policy, 'ban', target)
    expect(banned.body.limits).toMatchObject([{ policy: 'per-ip', bannedForMs: 7_200_000 }])
    const reasonOf = async (key: string) => {
      const { body } = await api.decide({ policy: 'per-ip', key, mode: 'peek' })
      return body.reason
    }
    expect(await Promise.all(['1', '2', '3'].map((end) => reasonOf(`203.0.113.${end}`)))).toEqual([
      'banned',
      'limited',
      'within-limit',
    ])
    await api.operate(policy, 'unban', { subject })
    expect(await reasonOf('203.0.113.1')).not.toBe('banned')
  })
})

test('Without Redis, the counts show fallbacks, errors and the open circuit.', async () => {
  const api = await startApi(
    { policies: [{ ...policy, name: 'per-ip', limit: 10, onStoreError: 'allow' }] },
    { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9' },
    { observe: {} },
  )
  try {
    let sent = 0
    // The circuit stays open for a second only.
    const [{ fallbacks, total }, metrics] = await vi.waitFor(
      async () => {
        for (let time = 0; time < 12; time++, sent++) await api.stack.fetch('/')
        const read = [await statsOf(api), await metricsOf(api)] as const
        expect(read[0].databases).toEqual([{ circuit: 'open' }])
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
  } finally {
    await api.stop()
  }
})
