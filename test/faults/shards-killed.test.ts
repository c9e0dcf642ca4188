/** What becomes of a request when one of several databases is away. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startFaults } from 'sluice-fault-proxy'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Decision } from '../../src/base/decision.ts'
import {
  api,
  expectNoCrossedAnswers,
  get,
  keyAt,
  kill,
  leftOf,
  many,
  operateToken,
  quota,
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

describe.each([0, 1])('the database %i is killed', (dead) => {
  const living = 1 - dead

  test('The keys of the other database are unaffected, and the killed one recovers.', async () => {
    await restartWorker()
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

  test('A request with keys in both is decided by the living database and by onStoreError of the other.', async () => {
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
    const lines = running.worker.logs.map((line) => JSON.parse(line))
    const named = lines.filter(({ event }) => /^(store-error|breaker)/.test(event))
    expect(named.length).toBeGreaterThan(0)
    expect(named.every(({ store }) => shards.includes(store))).toBe(true)
  })
})

test('No client gets more than a policy with onStoreError deny admits, for any fault and any kind of policy.', async () => {
  const faults = await Promise.all(shards.map(() => startFaults({ target: running.bridge.url })))
  const strict = {
    ...quota,
    onStoreError: 'deny',
    onMissingKey: 'skip',
    check: 'parallel',
  } as const
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
