/** Several databases, in workerd: what becomes of a request when one of them is away. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startFaults } from 'sluice-fault-proxy'
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type RunningOrigin, startOrigin } from '../../dev/origin.ts'
import { type RunningWorker, startWorker } from '../../dev/worker.ts'
import type { Decision } from '../../src/base/decision.ts'
import type { ConfigOptions, PolicyOptions } from '../../src/config/options.ts'
import { rendezvous } from '../../src/store/shards/rendezvous.ts'
import { CROSSED } from '../support/crossed.ts'

// These tests stop their Redis: never somebody else's.
delete process.env.REDIS_URL

const shards = ['eu-1', 'eu-2']
const placeOf = rendezvous(shards)
const gateToken = 'a-api-token-for-tests'
const operateToken = 'an-operate-token-for-tests'

const quota = { algorithm: 'fixed-window', limit: 3, window: '1d' } as const
const policies: PolicyOptions[] = (['allow', 'deny', 'local'] as const).flatMap((onStoreError) =>
  ['x', 'y'].map((letter) => ({
    ...quota,
    name: `${onStoreError}-${letter}`,
    key: `header:x-${letter}` as const,
    onMissingKey: 'skip' as const,
    onStoreError,
    localShare: 0.34,
    match: { path: `/${onStoreError}` },
  })),
)
const config: ConfigOptions = {
  shards,
  hashKeys: false, // so that a test can tell who lives where
  degradedHeader: true,
  deadline: '10s', // a busy machine must not turn a wait into a store error
  policies: [
    ...policies,
    ...(['x', 'y'] as const).map((letter) => ({
      ...quota,
      name: `failures-${letter}`,
      key: `header:x-${letter}` as const,
      match: { path: ['/200', '/404'] },
      countOnly: '4xx' as const,
    })),
    {
      ...quota,
      name: 'shown',
      key: 'header:x-x',
      match: { path: '/shadow' },
      onStoreError: 'allow',
    },
    { ...quota, name: 'hidden', key: 'header:x-y', match: { path: '/shadow' }, mode: 'shadow' },
  ],
}

let redis: RunningRedis[]
let bridge: Bridge
let origin: RunningOrigin
let worker: RunningWorker

beforeAll(async () => {
  redis = await Promise.all(shards.map(() => startRedis()))
  bridge = await startBridge({
    redis: redis.map(({ url }, index) => ({ url, token: shards[index]! })),
  })
  origin = await startOrigin()
  worker = await newWorker()
})
afterAll(async () => {
  await worker.stop()
  await Promise.all([bridge.close(), origin.close()])
  await Promise.all(redis.map((one) => one.stop()))
})
afterEach(() => {
  expect(worker.logs.join('\n')).not.toMatch(CROSSED)
})

const newWorker = (change: Partial<ConfigOptions> = {}, env: Record<string, string> = {}) =>
  startWorker(fileURLToPath(new URL('../../dist/any-config', import.meta.url)), {
    env: {
      UPSTASH_REDIS_REST_URL_EU_1: bridge.url,
      UPSTASH_REDIS_REST_TOKEN_EU_1: 'eu-1',
      UPSTASH_REDIS_REST_URL_EU_2: bridge.url,
      UPSTASH_REDIS_REST_TOKEN_EU_2: 'eu-2',
      SLUICE_SECRET: 'a-secret-of-names',
      SLUICE_API_TOKEN: gateToken,
      SLUICE_OPERATE_TOKEN: operateToken,
      ORIGIN: origin.url,
      CONFIG: JSON.stringify({ ...config, ...change }),
      ...env,
    },
  })

let keys = 0
/** A new value of the header whose subject lives there. */
function keyAt(place: number, header: string): string {
  for (;;) {
    const key = `key-${++keys}`
    if (placeOf(`header:${header}=${key}`) === place) return key
  }
}

const get = async (path: string, headers: Record<string, string>) => {
  const response = await fetch(worker.url + path, { headers, redirect: 'manual' })
  const body = await response.text()
  return {
    status: response.status,
    left: [...(response.headers.get('ratelimit') ?? '').matchAll(/;r=(\d+)/g)].map(([, r]) =>
      Number(r),
    )[0],
    policies: [...(response.headers.get('ratelimit-policy') ?? '').matchAll(/"([^"]+)"/g)].map(
      ([, name]) => name,
    ),
    fallback: response.headers.get('sluice-degraded'),
    shadow: /"sluice-shadow": "(.*?)"[,\n]/i.exec(body)?.[1],
  }
}
const api = async <T>(path: string, body?: unknown, token = gateToken) => {
  const response = await fetch(`${worker.url}/_sluice/v1${path}`, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: { Authorization: `Bearer ${token}` },
  })
  return (await response.json()) as T
}
/** What a policy has left for a key, by its own word. */
const leftOf = async (policy: string, key: string) =>
  (await api<Decision>('/decide', { policy, key, mode: 'peek' })).limits[0]?.remaining
const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status).sort()
const many = <T>(count: number, what: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => what(index)))

async function kill(place: number) {
  const { url } = redis[place]!
  await redis[place]!.stop()
  return async () => {
    redis[place] = await startRedis({ port: Number(new URL(url).port) })
    await until(async () => (await get('/deny', { 'x-x': keyAt(place, 'x-x') })).status === 200)
  }
}
async function until(holds: () => Promise<boolean>) {
  for (let attempt = 0; !(await holds()); attempt++) {
    if (attempt === 200) throw new Error('it never came true')
    await sleep(50)
  }
}

describe('where all answer', () => {
  test('a request with keys in both is decided by both, and told of both', async () => {
    const [x, y] = [keyAt(0, 'x-x'), keyAt(1, 'x-y')]
    await get('/deny', { 'x-x': x })
    expect(await get('/deny', { 'x-x': x, 'x-y': y })).toMatchObject({
      status: 200,
      left: 1,
      policies: ['deny-x', 'deny-y'],
      fallback: null,
    })
    const { limits, decidedAt: at } = await api<Decision>('/decide', {
      request: { url: 'https://a.example/deny', headers: { 'x-x': x, 'x-y': y } },
    })
    expect(limits.map(({ remaining }) => remaining)).toEqual([0, 1])
    expect(Math.min(...limits.map(({ decidedAt: at }) => at!))).toBe(at)
  })

  test('what one refuses the other has back', async () => {
    const [x, y] = [keyAt(0, 'x-x'), keyAt(1, 'x-y')]
    for (let n = 0; n < 3; n++) await get('/deny', { 'x-y': y })
    for (let n = 0; n < 5; n++)
      expect((await get('/deny', { 'x-x': x, 'x-y': y })).status).toBe(429)
    await until(async () => (await leftOf('deny-x', x)) === 3)
    expect((await get('/deny', { 'x-x': x })).left).toBe(2)
  })

  test('who met what was given back later is not refused any longer', async () => {
    for (let attempt = 0; attempt < 10; attempt++) {
      const [x, y] = [keyAt(0, 'x-x'), keyAt(1, 'x-y')]
      for (let n = 0; n < 3; n++) await get('/deny', { 'x-y': y })
      for (let n = 0; n < 2; n++) await get('/deny', { 'x-x': x })
      // For a moment the first has the last unit of x.
      const [, alone] = await Promise.all([
        get('/deny', { 'x-x': x, 'x-y': y }),
        get('/deny', { 'x-x': x }),
      ])
      const left = alone.status === 200 ? 0 : 1
      await until(async () => (await leftOf('deny-x', x)) === left)
      expect((await get('/deny', { 'x-x': x })).status).toBe(left === 0 ? 429 : 200)
    }
  })

  test('200 at once, of pairs in any places, admit no more than each limit', async () => {
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
        await until(async () => (await leftOf(policy, key)) === 3 - used)
      }
    }
  })

  test('what the answer does not count comes back to each, by its own clock', async () => {
    const headers = { 'x-x': keyAt(0, 'x-x'), 'x-y': keyAt(1, 'x-y') }
    for (let n = 0; n < 5; n++) expect((await get('/200', headers)).status).toBe(200)
    await until(async () => (await leftOf('failures-x', headers['x-x'])) === 3)
    await until(async () => (await leftOf('failures-y', headers['x-y'])) === 3)
  })

  test('a policy in shadow elsewhere is charged as if it were real', async () => {
    const headers = { 'x-x': keyAt(0, 'x-x'), 'x-y': keyAt(1, 'x-y') }
    for (let n = 0; n < 3; n++) await get('/shadow', headers)
    expect(await leftOf('hidden', headers['x-y'])).toBe(0)
    const other = { 'x-x': headers['x-x'], 'x-y': keyAt(1, 'x-y') }
    expect((await get('/shadow', other)).status).toBe(429)
    await until(async () => (await leftOf('hidden', other['x-y'])) === 3)
  })

  test('each tells operators how it does', async () => {
    const { store, shards: told } = await api<{ store: object; shards: object[] }>(
      '/policies',
      undefined,
      operateToken,
    )
    expect(store).toEqual({ status: 'ok', roundTripMs: expect.any(Number) })
    expect(told).toEqual(
      shards.map((name) => ({ name, status: 'ok', roundTripMs: expect.any(Number) })),
    )
  })
})

describe.each([0, 1])('database %i is killed in the middle', (dead) => {
  const living = 1 - dead

  test('the keys of the other notice nothing, and it heals', async () => {
    await worker.stop()
    worker = await newWorker()
    const answers: { place: number; status: number; fallback: string | null }[] = []
    let goesOn = true
    const load = many(16, async (n) => {
      const place = n % 2
      while (goesOn) {
        const { status, fallback } = await get('/deny', { 'x-x': keyAt(place, 'x-x') })
        answers.push({ place, status, fallback })
      }
    })
    const of = (place: number) => answers.filter((one) => one.place === place)
    const fallback = (place: number) => of(place).filter(({ fallback }) => fallback).length
    const more = (count: number, what: () => number) => {
      const enough = what() + count
      return until(async () => what() >= enough)
    }
    try {
      await more(50, () => answers.length)
      const revive = await kill(dead)
      await more(10, () => fallback(dead))
      await more(100, () => of(living).length)
      await revive()
      await more(100, () => answers.length)
    } finally {
      goesOn = false
      await load
    }
    expect(fallback(living)).toBe(0)
    expect(new Set(statuses(of(living)))).toEqual(new Set([200]))
    expect(new Set(statuses(of(dead)))).toEqual(new Set([200, 503]))
    expect(answers.slice(-20).filter(({ status }) => status !== 200)).toEqual([])
  })

  test('requests with keys in both are decided by the one, and by onStoreError of the other', async () => {
    const revive = await kill(dead)
    const pair = () => ({ 'x-x': keyAt(living, 'x-x'), 'x-y': keyAt(dead, 'x-y') })
    try {
      const denied = pair()
      expect(await get('/deny', denied)).toMatchObject({
        status: 503,
        left: undefined,
        fallback: 'deny',
      })
      await until(async () => (await leftOf('deny-x', denied['x-x'])) === 3)

      const allowed = pair()
      const left = [await get('/allow', allowed), await get('/allow', allowed)]
      expect(left).toMatchObject([
        { status: 200, left: 2, policies: ['allow-x'], fallback: 'allow' },
        { status: 200, left: 1, policies: ['allow-x'], fallback: 'allow' },
      ])
      await get('/allow', allowed)
      expect(await get('/allow', allowed)).toMatchObject({ status: 429, fallback: null })

      const local = pair() // a third of 3 is one
      expect(await get('/local', local)).toMatchObject({ status: 200, left: 2, fallback: 'local' })
      expect(await get('/local', local)).toMatchObject({ status: 429, fallback: 'local' })
      await until(async () => (await leftOf('local-x', local['x-x'])) === 2)

      const asked = await api<Decision>('/decide', {
        request: { url: 'https://a.example/allow', headers: pair() },
      })
      expect(asked).toMatchObject({ allowed: true, reason: 'store-error', fallback: 'allow' })
      expect(asked.limits.map(({ policy }) => policy)).toEqual(['allow-x'])
      expect(asked.decidedAt).toBeUndefined()
      const looked = await api<Decision>('/decide', {
        request: { url: 'https://a.example/deny', headers: pair() },
        mode: 'peek',
      })
      expect(looked).toMatchObject({ allowed: false, reason: 'store-error', fallback: 'deny' })

      // Where a policy in shadow alone is away, nothing is missing.
      const shown = { 'x-x': keyAt(living, 'x-x'), 'x-y': keyAt(dead, 'x-y') }
      expect(await get('/shadow', shown)).toMatchObject({ status: 200, left: 2, fallback: null })
      // Where the enforced one is, the shadow is charged where the request passes.
      const hidden = { 'x-x': keyAt(dead, 'x-x'), 'x-y': keyAt(living, 'x-y') }
      expect(await get('/shadow', hidden)).toMatchObject({ status: 200, fallback: 'allow' })
      expect(await leftOf('hidden', hidden['x-y'])).toBe(2)

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
    const lines = worker.logs.map((line) => JSON.parse(line))
    const named = lines.filter(({ event }) => /^(store-error|breaker)/.test(event))
    expect(named.length).toBeGreaterThan(0)
    expect(named.every(({ store }) => shards.includes(store))).toBe(true)
  })
})

test('whatever fails, and however policies are asked, nobody has more than a policy that denies lets pass', async () => {
  const faults = await Promise.all(shards.map(() => startFaults({ target: bridge.url })))
  const strict = {
    ...quota,
    onStoreError: 'deny',
    onMissingKey: 'skip',
    check: 'parallel',
  } as const
  await worker.stop()
  worker = await newWorker(
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
  const until = performance.now() + 5000
  const failing = (async () => {
    for (let turn = 0; performance.now() < until - 2500; turn++) {
      const place = faults[turn % 2]!
      await place.set(kinds[turn % kinds.length]!, { next: 3 })
      await sleep(80)
      await place.set(null)
    }
  })()
  try {
    await many(24, async (client) => {
      for (let n = client; performance.now() < until; n += 7) {
        const [x, y, z] = [
          xs[n % 2]!,
          n % 3 ? ys[n % 4 < 2 ? 0 : 1] : undefined,
          n % 5 ? undefined : zs[0],
        ]
        const headers = { 'x-x': x, ...(y && { 'x-y': y }), ...(z && { 'x-z': z }) }
        const { status } = await fetch(worker.directUrl, {
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

test('a database without its variables fails its own keys only, and is named', async () => {
  await worker.stop()
  worker = await newWorker({}, { UPSTASH_REDIS_REST_URL_EU_2: '' })
  expect((await get('/deny', { 'x-x': keyAt(0, 'x-x') })).status).toBe(200)
  expect((await get('/deny', { 'x-x': keyAt(1, 'x-x') })).status).toBe(503)
  await until(async () => worker.logs.some((line) => line.includes('store-error')))
  const [line] = worker.logs.map((line) => JSON.parse(line))
  expect(line).toMatchObject({ code: 'not-configured', store: 'eu-2' })
  expect(line.message).toContain('UPSTASH_REDIS_REST_URL_EU_2')
})

test('without a secret the token of the first names clients, and the log says so', async () => {
  await worker.stop()
  worker = await newWorker({}, { SLUICE_SECRET: '' })
  expect((await get('/deny', { 'x-x': keyAt(1, 'x-x') })).status).toBe(200)
  await until(async () => worker.logs.some((line) => line.includes('"no-secret"')))
  expect(worker.logs).toHaveLength(1)
})

test('live policies are read from the first of the list', async () => {
  await worker.stop()
  worker = await newWorker({ live: { from: 'redis', every: 1 } })
  const document = JSON.stringify({ policies: [{ ...quota, name: 'living', key: 'header:x-x' }] })
  await fetch(bridge.url, {
    method: 'POST',
    headers: { Authorization: 'Bearer eu-1' },
    body: JSON.stringify(['SET', 'sluice:live', document]),
  })
  await until(async () => (await get('/', { 'x-x': keyAt(1, 'x-x') })).policies[0] === 'living')
})
