import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Decision } from '../../src/base/decision.ts'
import {
  api,
  expectNoCrossedAnswers,
  get,
  keyAt,
  many,
  operateToken,
  quota,
  remainingOf,
  restartWorker,
  running,
  shards,
  startShards,
  statuses,
  stopShards,
  until,
} from '../support/shards.ts'

beforeAll(startShards)
afterAll(stopShards)
afterEach(expectNoCrossedAnswers)

describe('several reachable databases', () => {
  test('A request with keys in both databases is decided by both, and its fields report both.', async () => {
    const [x, y] = [keyAt(0, 'x-x'), keyAt(1, 'x-y')]
    await get('/deny', { 'x-x': x })
    expect(await get('/deny', { 'x-x': x, 'x-y': y })).toMatchObject({
      status: 200,
      remaining: 1,
      policies: ['deny-x', 'deny-y'],
      fallback: null,
    })
    const { limits, decidedAt: at } = await api<Decision>('/decide', {
      request: { url: 'https://a.example/deny', headers: { 'x-x': x, 'x-y': y } },
    })
    expect(limits.map(({ remaining }) => remaining)).toEqual([0, 1])
    expect(Math.min(...limits.map(({ decidedAt: at }) => at!))).toBe(at)
  })

  test('A refusal of one database refunds the charge of the other.', async () => {
    const [x, y] = [keyAt(0, 'x-x'), keyAt(1, 'x-y')]
    for (let n = 0; n < 3; n++) await get('/deny', { 'x-y': y })
    for (let n = 0; n < 5; n++)
      expect((await get('/deny', { 'x-x': x, 'x-y': y })).status).toBe(429)
    await until(async () => (await remainingOf('deny-x', x)) === 3)
    expect((await get('/deny', { 'x-x': x })).remaining).toBe(2)
  })

  test('A client that was refused because another request held the last unit passes once that unit is refunded.', async () => {
    for (let attempt = 0; attempt < 10; attempt++) {
      const [x, y] = [keyAt(0, 'x-x'), keyAt(1, 'x-y')]
      for (let n = 0; n < 3; n++) await get('/deny', { 'x-y': y })
      for (let n = 0; n < 2; n++) await get('/deny', { 'x-x': x })
      // The first request holds the last unit of x until its refund.
      const [, alone] = await Promise.all([
        get('/deny', { 'x-x': x, 'x-y': y }),
        get('/deny', { 'x-x': x }),
      ])
      const remaining = alone.status === 200 ? 0 : 1
      await until(async () => (await remainingOf('deny-x', x)) === remaining)
      expect((await get('/deny', { 'x-x': x })).status).toBe(remaining === 0 ? 429 : 200)
    }
  })

  test('Of 200 concurrent requests with keys in both databases, each limit admits no more than its size.', async () => {
    const xs = [keyAt(0, 'x-x'), keyAt(1, 'x-x'), keyAt(0, 'x-x')]
    const ys = [keyAt(1, 'x-y'), keyAt(0, 'x-y')]
    const pair = (n: number) => ({ 'x-x': xs[n % 3]!, 'x-y': ys[n % 2]! })
    const answers = await many(200, async (n) => ({ n, ...(await get('/deny', pair(n))) }))
    expect(new Set(statuses(answers))).toEqual(new Set([200, 429]))
    const passed = answers.filter(({ status }) => status === 200)
    for (const [policy, header, list] of [
      ['deny-x', 'x-x', xs],
      ['deny-y', 'x-y', ys],
    ] as const) {
      for (const key of list) {
        const used = passed.filter(({ n }) => pair(n)[header] === key).length
        expect(used).toBeLessThanOrEqual(3)
        await until(async () => (await remainingOf(policy, key)) === 3 - used)
      }
    }
  })

  test('Units that do not count are refunded in each database, by the clock of that database.', async () => {
    const headers = { 'x-x': keyAt(0, 'x-x'), 'x-y': keyAt(1, 'x-y') }
    for (let n = 0; n < 5; n++) expect((await get('/200', headers)).status).toBe(200)
    await until(async () => (await remainingOf('failures-x', headers['x-x'])) === 3)
    await until(async () => (await remainingOf('failures-y', headers['x-y'])) === 3)
  })

  test('A shadow policy in another database is charged like an enforced one.', async () => {
    const headers = { 'x-x': keyAt(0, 'x-x'), 'x-y': keyAt(1, 'x-y') }
    for (let n = 0; n < 3; n++) await get('/shadow', headers)
    expect(await remainingOf('hidden', headers['x-y'])).toBe(0)
    const other = { 'x-x': headers['x-x'], 'x-y': keyAt(1, 'x-y') }
    expect((await get('/shadow', other)).status).toBe(429)
    await until(async () => (await remainingOf('hidden', other['x-y'])) === 3)
  })

  test('Operators see the status of each database.', async () => {
    const { store, shards: reported } = await api<{ store: object; shards: object[] }>(
      '/policies',
      undefined,
      operateToken,
    )
    expect(store).toEqual({ status: 'ok', roundTripMs: expect.any(Number) })
    expect(reported).toEqual(
      shards.map((name) => ({ name, status: 'ok', roundTripMs: expect.any(Number) })),
    )
  })
})

test('A database without its variables fails only for its own keys, and the log names it.', async () => {
  await restartWorker({}, { UPSTASH_REDIS_REST_URL_EU_2: '' })
  expect((await get('/deny', { 'x-x': keyAt(0, 'x-x') })).status).toBe(200)
  expect((await get('/deny', { 'x-x': keyAt(1, 'x-x') })).status).toBe(503)
  await until(async () => running.worker.logs.some((line) => line.includes('store-error')))
  const [line] = running.worker.logs.map((line) => JSON.parse(line))
  expect(line).toMatchObject({ code: 'not-configured', store: 'eu-2' })
  expect(line.message).toContain('UPSTASH_REDIS_REST_URL_EU_2')
})

test('Without SLUICE_SECRET the token of the first database hashes keys, and the log says so.', async () => {
  await restartWorker({}, { SLUICE_SECRET: '' })
  expect((await get('/deny', { 'x-x': keyAt(1, 'x-x') })).status).toBe(200)
  await until(async () => running.worker.logs.some((line) => line.includes('"no-secret"')))
  expect(running.worker.logs).toHaveLength(1)
})

test('Live policies are read from the first database of the list.', async () => {
  await restartWorker({ live: { from: 'redis', every: 1 } })
  const document = JSON.stringify({ policies: [{ ...quota, name: 'living', key: 'header:x-x' }] })
  await fetch(running.bridge.url, {
    method: 'POST',
    headers: { Authorization: 'Bearer eu-1' },
    body: JSON.stringify(['SET', 'sluice:live', document]),
  })
  await until(async () => (await get('/', { 'x-x': keyAt(1, 'x-x') })).policies[0] === 'living')
})
