/** A Worker that shards over two databases, while both are reachable, and while one of them is not. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startFaults } from 'sluice-fault-proxy'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Decision } from '../../src/core/base/decision.ts'
import { many, statuses } from '../support/fault-stack.ts'
import { isLong } from '../support/long.ts'
import {
  api,
  expectNoCrossedAnswers,
  get,
  keyAt,
  kill,
  operateToken,
  quota,
  remainingOf,
  restartWorker,
  running,
  shards,
  startShards,
  stopShards,
  until,
} from './shards-stack.ts'

beforeAll(startShards)
afterAll(stopShards)
afterEach(expectNoCrossedAnswers)

describe('several reachable databases', () => {
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

test('A database without its variables is an error that names the variable.', async () => {
  await restartWorker({}, { UPSTASH_REDIS_REST_URL_EU_2: '' })
  for (const shard of [0, 1]) {
    const response = await fetch(`${running.worker.url}/deny`, {
      headers: { 'x-x': keyAt(shard, 'x-x') },
    })
    expect(response.status).toBe(500)
    expect(await response.text()).toMatch(/UPSTASH_REDIS_REST_URL_EU_2/)
  }
})

test('Without SLUICE_SECRET the token of the first database hashes keys, and the log says so.', async () => {
  await restartWorker({}, { SLUICE_SECRET: '' })
  expect((await get('/deny', { 'x-x': keyAt(0, 'x-x') })).status).toBe(200)
  await expect.poll(() => running.worker.logs).toHaveLength(1)
  expect(JSON.parse(running.worker.logs[0]!).event).toBe('no-secret')
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

describe.each(isLong ? [0, 1] : [0])('requests while database %i is down', (dead) => {
  const living = 1 - dead

  test('The keys of the other database are unaffected, and the killed one recovers.', async () => {
    await restartWorker()
    const answers: { shard: number; status: number; fallback: string | null }[] = []
    let isRunning = true
    const load = many(16, async (n) => {
      const shard = n % 2
      while (isRunning) {
        const { status, fallback } = await get('/deny', { 'x-x': keyAt(shard, 'x-x') })
        answers.push({ shard, status, fallback })
      }
    })
    const of = (shard: number) => answers.filter((one) => one.shard === shard)
    const fallback = (shard: number) => of(shard).filter(({ fallback }) => fallback).length
    const more = (count: number, current: () => number) => {
      const enough = current() + count
      return until(async () => current() >= enough)
    }
    try {
      await more(50, () => answers.length)
      const revive = await kill(dead)
      await more(10, () => fallback(dead))
      await more(100, () => of(living).length)
      await revive()
      await more(100, () => answers.length)
    } finally {
      isRunning = false
      await load
    }
    expect(fallback(living)).toBe(0)
    expect(new Set(statuses(of(living)))).toEqual(new Set([200]))
    expect(new Set(statuses(of(dead)))).toEqual(new Set([200, 503]))
    expect(answers.slice(-20).filter(({ status }) => status !== 200)).toEqual([])
  })

  test('A request with keys in both databases is decided by the living one and by onStoreError for the other.', async () => {
    const revive = await kill(dead)
    const pair = () => ({ 'x-x': keyAt(living, 'x-x'), 'x-y': keyAt(dead, 'x-y') })
    try {
      const denied = pair()
      expect(await get('/deny', denied)).toMatchObject({
        status: 503,
        remaining: undefined,
        fallback: 'deny',
      })
      await until(async () => (await remainingOf('deny-x', denied['x-x'])) === 3)

      const allowed = pair()
      const remaining = [await get('/allow', allowed), await get('/allow', allowed)]
      expect(remaining).toMatchObject([
        { status: 200, remaining: 2, policies: ['allow-x'], fallback: 'allow' },
        { status: 200, remaining: 1, policies: ['allow-x'], fallback: 'allow' },
      ])
      await get('/allow', allowed)
      expect(await get('/allow', allowed)).toMatchObject({ status: 429, fallback: null })

      const local = pair() // the local share is one request
      expect(await get('/local', local)).toMatchObject({
        status: 200,
        remaining: 2,
        fallback: 'local',
      })
      expect(await get('/local', local)).toMatchObject({ status: 429, fallback: 'local' })
      await until(async () => (await remainingOf('local-x', local['x-x'])) === 2)

      const decision = await api<Decision>('/decide', {
        request: { url: 'https://a.example/allow', headers: pair() },
      })
      expect(decision).toMatchObject({ allowed: true, reason: 'store-error', fallback: 'allow' })
      expect(decision.limits.map(({ policy }) => policy)).toEqual(['allow-x'])
      expect(decision.decidedAt).toBeUndefined()
      const peeked = await api<Decision>('/decide', {
        request: { url: 'https://a.example/deny', headers: pair() },
        mode: 'peek',
      })
      expect(peeked).toMatchObject({ allowed: false, reason: 'store-error', fallback: 'deny' })

      // If only the database of a shadow policy is down, the decision needs no fallback.
      const shown = { 'x-x': keyAt(living, 'x-x'), 'x-y': keyAt(dead, 'x-y') }
      expect(await get('/shadow', shown)).toMatchObject({
        status: 200,
        remaining: 2,
        fallback: null,
      })
      // If the database of the enforced policy is down, the shadow policy is charged for admitted requests.
      const hidden = { 'x-x': keyAt(dead, 'x-x'), 'x-y': keyAt(living, 'x-y') }
      expect(await get('/shadow', hidden)).toMatchObject({ status: 200, fallback: 'allow' })
      expect(await remainingOf('hidden', hidden['x-y'])).toBe(2)

      const report = await api<{
        store: object
        shards: object[]
        policies: { decidedBy: string }[]
      }>('/policies', undefined, operateToken)
      expect(report.store).toMatchObject({ status: 'failing' })
      expect(report.shards[dead]).toMatchObject({ name: shards[dead], status: 'failing' })
      expect(report.shards[living]).toMatchObject({ name: shards[living], status: 'ok' })
      expect(report.policies[0]).toMatchObject({ decidedBy: 'allow' })
    } finally {
      await revive()
    }
    const lines = running.worker.logs.map((line) => JSON.parse(line))
    const named = lines.filter(({ event }) => /^(store-error|breaker)/.test(event))
    expect(named.length).toBeGreaterThan(0)
    expect(named.every(({ store }) => shards.includes(store))).toBe(true)
  })
})

test('No client gets more than a policy with onStoreError deny admits, for any fault and any kind of policy.', async () => {
  const faults = await Promise.all(shards.map(() => startFaults({ target: running.bridge.url })))
  const strict = { ...quota, onStoreError: 'deny', onMissingKey: 'skip' } as const
  await restartWorker(
    {
      deadline: '250ms',
      policies: [
        { ...strict, name: 'leased', limit: 60, key: 'header:x-x', lease: { max: 10, ttl: '5s' } },
        { ...strict, name: 'plain', limit: 8, key: 'header:x-y' },
        {
          ...strict,
          name: 'log',
          algorithm: 'sliding-log',
          limit: 5,
          key: ['header:x-x', 'header:x-y'],
        },
        { ...strict, name: 'failures', limit: 8, key: 'header:x-z', countOnly: '2xx' },
      ],
    },
    { UPSTASH_REDIS_REST_URL_EU_1: faults[0]!.url, UPSTASH_REDIS_REST_URL_EU_2: faults[1]!.url },
  )
  const [xs, ys, zs] = (['x-x', 'x-y', 'x-z'] as const).map((header) => [
    keyAt(0, header),
    keyAt(1, header),
  ]) as [string[], string[], string[]]
  const passed = new Map<string, number>()
  const count = (limit: string) => passed.set(limit, (passed.get(limit) ?? 0) + 1)
  const kinds = [
    'late=60',
    'reset-after',
    'lose',
    'late=240',
    'hang',
    'noscript',
    'html=502',
  ] as const
  const ms = isLong ? 5000 : 2500
  const until = performance.now() + ms
  const failing = (async () => {
    for (let turn = 0; performance.now() < until - ms / 2; turn++) {
      const faulty = faults[turn % 2]!
      await faulty.set(kinds[turn % kinds.length]!, { next: 3 })
      await sleep(80)
      await faulty.set(null)
    }
  })()
  try {
    await many(24, async (client) => {
      // On a busy machine the first requests miss their deadline.
      for (let n = client; performance.now() < until || passed.size <= 2; n += 7) {
        const [x, y, z] = [
          xs[n % 2]!,
          n % 3 ? ys[n % 4 < 2 ? 0 : 1] : undefined,
          n % 5 ? undefined : zs[0],
        ]
        const headers = { 'x-x': x, ...(y && { 'x-y': y }), ...(z && { 'x-z': z }) }
        const { status } = await fetch(running.worker.directUrl, {
          headers,
          ...(n % 17 === 0 && { signal: AbortSignal.timeout(30) }),
        }).catch(() => ({ status: 0 }))
        if (status !== 200) continue
        count(`leased ${x}`)
        if (y) count(`plain ${y}`)
        if (y) count(`log ${x} ${y}`)
        if (z) count(`failures ${z}`)
      }
    })
  } finally {
    await failing
    await Promise.all(faults.map((one) => one.close()))
  }
  const most = { leased: 60, plain: 8, log: 5, failures: 8 }
  expect(passed.size).toBeGreaterThan(2)
  for (const [limit, number] of passed) {
    expect(number, limit).toBeLessThanOrEqual(most[limit.split(' ')[0] as keyof typeof most])
  }
})
