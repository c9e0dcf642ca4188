/** Two applications on one database. */
import { createClient } from 'redis'
import { beforeEach, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { apiOf, apiTokens } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'

const gateway = useGateway({ config: { policies: [] } })
const connect = () => createClient({ url: gateway.redis.url }).connect()
async function withRedis<T>(run: (redis: Awaited<ReturnType<typeof connect>>) => Promise<T>) {
  const redis = await connect()
  const result = await run(redis)
  redis.destroy()
  return result
}
beforeEach(() => withRedis((redis) => redis.flushAll()))

/** Starts another application on the same database. All requests come from the same client. */
function startApp(config: ConfigOptions) {
  const { fetch } = gateway.start(config, { env: apiTokens })
  const { decide } = apiOf(fetch)
  return {
    fetch,
    async statuses(times: number, path = '/') {
      const statuses: number[] = []
      while (statuses.length < times) statuses.push((await fetch(path)).status)
      return statuses
    },
    remaining: async (idempotencyKey: string) => {
      const headers = { 'Idempotency-Key': idempotencyKey }
      const { body } = await decide({ policy: 'per-ip', key: '203.0.113.7' }, { headers })
      return body.limits[0]!.remaining
    },
  }
}

const perIp = (limit: number) => ({ policies: [{ name: 'per-ip', limit, window: '1h' as const }] })
const ok = (times: number) => Array<number>(times).fill(200)

const keys = () => withRedis(async (redis) => (await redis.keys('*')).sort())

test('Apps with different namespaces, and an app without one, have separate counters.', async () => {
  const shop = startApp({ namespace: 'shop', ...perIp(100) })
  const admin = startApp({ namespace: 'admin', ...perIp(5) })
  const plain = startApp(perIp(5))
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

test.each([{}, { namespace: 'shop' }])(
  'Two deployments with the namespace of %j share the counters of policies with the same name.',
  async (of) => {
    const first = startApp({ ...of, ...perIp(100) })
    const second = startApp({ ...of, ...perIp(5) })
    expect(await first.statuses(6)).toEqual(ok(6))
    expect(await second.statuses(1)).toEqual([429])
  },
)

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
  const shop = startApp({ namespace: 'shop', ...config })
  const admin = startApp({ namespace: 'admin', ...config })
  for (const app of [shop, admin]) {
    // The same idempotency key in another namespace is another call.
    expect([await app.remaining('order-1'), await app.remaining('order-1')]).toEqual([4, 4])
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
  const document = (limit: number) => JSON.stringify(perIp(limit))
  await withRedis(async (redis) => {
    await redis.set('sluice:live', document(1))
    await redis.set('sluice:shop:live', document(2))
  })
  const live = { from: 'redis', every: '1s' } as const
  const shop = startApp({ namespace: 'shop', live, ...perIp(100) })
  await expect
    .poll(async () => (await shop.statuses(3)).at(-1), { timeout: 10_000, interval: 100 })
    .toBe(429)
  const response = await shop.fetch('/', { ip: '192.0.2.1' })
  expect(response.headers.get('ratelimit-policy')).toBe('"per-ip";q=2;w=3600')
})
