/** Two applications on one database. */
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Stack, startStack } from '../../dev/stack.ts'
import { type RunningWorker, startWorker } from '../../dev/worker.ts'
import type { ConfigOptions } from '../../src/config/options.ts'

const anyConfig = fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url))
const API_TOKEN = 'a-api-token-for-tests'

let stack: Stack
let workers: RunningWorker[]
beforeEach(async () => {
  stack = await startStack({ config: { policies: [] } })
  workers = []
})
afterEach(async () => {
  for (const worker of workers) await worker.stop()
  await stack.stop()
})

/** Starts another application on the same database. All requests come from the same client. */
async function startApp(config: ConfigOptions) {
  const worker = await startWorker(anyConfig, {
    env: {
      UPSTASH_REDIS_REST_URL: stack.bridge.url,
      UPSTASH_REDIS_REST_TOKEN: stack.bridge.token,
      SLUICE_API_TOKEN: API_TOKEN,
      ORIGIN: stack.origin.url,
      CONFIG: JSON.stringify({ deadline: '10s', ...config }),
    },
  })
  workers.push(worker)
  return {
    async statuses(times: number, path = '/') {
      const statuses: number[] = []
      while (statuses.length < times) {
        const response = await fetch(worker.url + path, {
          headers: { 'CF-Connecting-IP': '203.0.113.7' },
        })
        await response.arrayBuffer()
        statuses.push(response.status)
      }
      return statuses
    },
    async decide(idempotencyKey: string) {
      const response = await fetch(`${worker.url}/_sluice/v1/decide`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${API_TOKEN}`, 'Idempotency-Key': idempotencyKey },
        body: JSON.stringify({ policy: 'per-ip', key: '203.0.113.7' }),
      })
      return (await response.json()) as { limits: { remaining: number }[] }
    },
  }
}

const perIp = (limit: number) => ({ policies: [{ name: 'per-ip', limit, window: '1h' as const }] })
const ok = (times: number) => Array<number>(times).fill(200)

async function keys() {
  const redis = await createClient({ url: stack.redis.url }).connect()
  const names = await redis.keys('*')
  redis.destroy()
  return names.sort()
}

test('Apps with different namespaces, and an app without one, have separate counters.', async () => {
  const shop = await startApp({ namespace: 'shop', ...perIp(100) })
  const admin = await startApp({ namespace: 'admin', ...perIp(5) })
  const plain = await startApp(perIp(5))
  expect(await shop.statuses(6)).toEqual(ok(6))
  expect(await admin.statuses(6)).toEqual([...ok(5), 429])
  expect(await plain.statuses(6)).toEqual([...ok(5), 429])
  expect(await shop.statuses(1)).toEqual([200])
  expect(await keys()).toEqual([
    expect.stringMatching(/^sluice:1:admin:\{[\w-]{16}\}$/),
    expect.stringMatching(/^sluice:1:shop:\{[\w-]{16}\}$/),
    expect.stringMatching(/^sluice:1:\{[\w-]{16}\}$/),
  ])
})

test('Apps without a namespace share the counters of policies with the same name.', async () => {
  const shop = await startApp(perIp(100))
  const admin = await startApp(perIp(5))
  expect(await shop.statuses(6)).toEqual(ok(6))
  expect(await admin.statuses(1)).toEqual([429])
})

test('Two deployments with the same namespace share their counters.', async () => {
  const first = await startApp({ namespace: 'shop', ...perIp(5) })
  const second = await startApp({ namespace: 'shop', ...perIp(5) })
  expect(await first.statuses(5)).toEqual(ok(5))
  expect(await second.statuses(1)).toEqual([429])
})

test('Logs, slots and idempotency records belong to a namespace, too.', async () => {
  const config: ConfigOptions = {
    policies: [
      { name: 'per-ip', limit: 5, window: '1h' },
      {
        name: 'log',
        algorithm: 'sliding-log',
        limit: 5,
        window: '1h',
        match: { path: '/log' },
        penalty: { after: 2, within: '1m', ban: '10s' },
      },
      {
        name: 'slots',
        algorithm: 'concurrency',
        limit: 5,
        window: '1m',
        match: { path: '/slots' },
        onStoreError: 'deny',
      },
    ],
  }
  const shop = await startApp({ namespace: 'shop', ...config })
  const admin = await startApp({ namespace: 'admin', ...config })
  for (const app of [shop, admin]) {
    // The same idempotency key in another namespace is another call.
    expect((await app.decide('order-1')).limits[0]).toMatchObject({ remaining: 4 })
    expect((await app.decide('order-1')).limits[0]).toMatchObject({ remaining: 4 })
    expect(await app.statuses(1, '/log')).toEqual([200])
  }
  const names = await keys()
  for (const namespace of ['shop', 'admin']) {
    const inNamespace = names.filter((name) => name.startsWith(`sluice:1:${namespace}:{`))
    expect(inNamespace.filter((name) => name.includes('}:log:'))).toHaveLength(1)
    expect(inNamespace.filter((name) => /\{once-.*\}$/.test(name))).toHaveLength(1)
  }
  expect(names.filter((name) => !/^sluice:1:(shop|admin):\{/.test(name))).toEqual([])
  await shop.statuses(1, '/slots')
  expect((await keys()).filter((name) => !/^sluice:1:(shop|admin):\{/.test(name))).toEqual([])
})

test('Live policies of a namespace are read from the key of that namespace.', async () => {
  const redis = await createClient({ url: stack.redis.url }).connect()
  const document = (limit: number) => JSON.stringify(perIp(limit))
  await redis.set('sluice:live', document(1))
  await redis.set('sluice:shop:live', document(2))
  redis.destroy()
  const live = { from: 'redis', every: '1s' } as const
  const shop = await startApp({ namespace: 'shop', live, ...perIp(100) })
  await expect
    .poll(async () => (await shop.statuses(3)).at(-1), { timeout: 10_000, interval: 100 })
    .toBe(429)
  const worker = workers.at(-1)!
  const response = await fetch(worker.url, { headers: { 'CF-Connecting-IP': '192.0.2.1' } })
  expect(response.headers.get('ratelimit-policy')).toBe('"per-ip";q=2;w=3600')
})
