/** Limits by plan, and policies that change without a deployment: from Redis and from KV. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'
import { type Faults, startFaults } from 'sluice-fault-proxy'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonConfig } from '../../dev/any-config.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import { type RunningWorker, startWorker } from '../../dev/worker.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { sign } from '../support/issuer.ts'

const SECRET = 'a-secret-of-tokens-of-32-bytes-or-more'
const limits = { free: 3, pro: 100 }
const config: JsonConfig = {
  deadline: '10s',
  jwt: { secret: 'JWT_SECRET' },
  tables: { customers: { acme: 'pro', globex: 'free', initech: 'unheard-of' } },
  policies: [
    {
      name: 'header',
      limit: 5,
      window: '1h',
      limits,
      plan: 'header:x-plan',
      match: { path: '/header' },
    },
    {
      name: 'claim',
      limit: 5,
      window: '1h',
      limits,
      plan: 'jwt:plan',
      key: 'jwt:sub',
      match: { path: '/claim' },
    },
    {
      name: 'table',
      limit: 5,
      window: '1h',
      limits,
      plan: { key: 'header:x-customer', table: 'customers' },
      match: { path: '/table' },
    },
    {
      name: 'spaced',
      algorithm: 'gcra',
      limit: 1,
      window: '1h',
      limits: { pro: 360 }, // one unit in ten seconds
      plan: 'header:x-plan',
      match: { path: '/spaced' },
    },
  ],
}

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config, env: { JWT_SECRET: SECRET } })
})
afterAll(() => stack?.stop())

let clients = 0
const newClient = () => `198.51.100.${++clients}`
const left = (response: Response) => Number(/;r=(\d+)/.exec(response.headers.get('ratelimit')!)![1])

describe('plans', () => {
  test.each<[string, Record<string, string>, number]>([
    ['/header', { 'x-plan': 'free' }, 3],
    ['/header', { 'x-plan': 'pro' }, 100],
    ['/header', {}, 5],
    ['/header', { 'x-plan': '' }, 5],
    ['/header', { 'x-plan': 'Pro' }, 5],
    ['/header', { 'x-plan': 'pro, pro' }, 5],
    ...['__proto__', 'constructor', 'toString', 'hasOwnProperty'].flatMap(
      (name): [string, Record<string, string>, number][] => [
        ['/header', { 'x-plan': name }, 5],
        ['/table', { 'x-customer': name }, 5],
      ],
    ),
    ['/table', { 'x-customer': 'acme' }, 100],
    ['/table', { 'x-customer': 'globex' }, 3],
    ['/table', { 'x-customer': 'initech' }, 5],
    ['/table', { 'x-customer': 'pro' }, 5],
    ['/table', {}, 5],
  ])('A request to %s with the headers %j has a limit of %d.', async (path, headers, limit) => {
    const response = await stack.fetch(path, { headers, ip: newClient() })
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit-policy')).toMatch(`;q=${limit};`)
    expect(left(response)).toBe(limit - 1)
  })

  test('A claim selects a plan only if the token is verified.', async () => {
    const ask = async (claims: object, secret = SECRET) => {
      const token = await sign(claims, { alg: 'HS256' }, Buffer.from(secret))
      return left(await stack.fetch('/claim', { headers: { authorization: `Bearer ${token}` } }))
    }
    expect(await ask({ sub: 'ann', plan: 'pro' })).toBe(99)
    expect(await ask({ sub: 'bob' })).toBe(4)
    expect(await ask({ sub: 'cat', plan: ['pro'] })).toBe(4)
    expect(await ask({ sub: 'dan', plan: 'pro' }, 'another secret of at least 32 bytes')).toBe(4)
  })

  test('A client that changes its plan keeps its charges.', async () => {
    const ip = newClient()
    const ask = (plan: string) => stack.fetch('/header', { ip, headers: { 'x-plan': plan } })
    for (let time = 0; time < 3; time++) expect((await ask('free')).status).toBe(200)
    expect((await ask('free')).status).toBe(429)
    expect(left(await ask('pro'))).toBe(96)
    expect((await ask('free')).status).toBe(429)
  })

  test('A plan of a gcra policy changes the rate, and requests stay evenly spaced.', async () => {
    const ask = (ip: string) => stack.fetch('/spaced', { ip, headers: { 'x-plan': 'pro' } })
    const ip = newClient()
    expect(left(await ask(ip))).toBe(0)
    const { status, headers } = await ask(ip)
    expect([status, headers.get('retry-after')]).toEqual([
      429,
      expect.stringMatching(/^([1-9]|10)$/),
    ])
  })
})

describe('live policies', () => {
  const anyConfig = fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url))
  let faults: Faults
  let redis: Awaited<ReturnType<typeof connect>>
  const connect = () => createClient({ url: stack.redis.url }).connect()
  beforeAll(async () => {
    faults = await startFaults({ target: stack.bridge.url })
    redis = await connect()
  })
  afterAll(async () => {
    redis?.destroy()
    await faults?.close()
  })

  const document = (limit: number) =>
    JSON.stringify({ policies: [{ name: 'live', limit, window: '1h' }] })
  const deployed: ConfigOptions = {
    deadline: '10s',
    deny: { path: '/denied' },
    policies: [{ name: 'deployed', limit: 10, window: '1h' }],
  }
  const start = (live: ConfigOptions['live'], kv: string[] = [], store = faults.url) =>
    startWorker(anyConfig, {
      kv,
      env: {
        UPSTASH_REDIS_REST_URL: store,
        UPSTASH_REDIS_REST_TOKEN: stack.bridge.token,
        ORIGIN: stack.origin.url,
        CONFIG: JSON.stringify({ ...deployed, live }),
      },
    })
  const get = (worker: RunningWorker, path = '/', ip = newClient()) =>
    fetch(worker.directUrl + path, { headers: { 'cf-connecting-ip': ip } })
  const quotaOf = (worker: RunningWorker) =>
    expect.poll(
      async () => /"(.*?)";q=(\d+)/.exec((await get(worker)).headers.get('ratelimit-policy')!)?.[0],
      { timeout: 15_000, interval: 100 },
    )
  const logged = (worker: RunningWorker, event: string) =>
    worker.logs.map((line) => JSON.parse(line)).filter((line) => line.event === event)

  test.each(['redis', 'kv'])('Live policies from %s override the deployed ones.', async (from) => {
    const worker = await start(
      { from: from === 'kv' ? 'kv:RULES' : 'redis', key: 'rules', every: '200ms' },
      ['RULES'],
    )
    const namespace = await worker.kv('RULES')
    const put = (text: string) =>
      from === 'kv' ? namespace.put('rules', text) : redis.set('rules', text)
    await quotaOf(worker).toBe('"deployed";q=10')
    await put(document(7))
    await quotaOf(worker).toBe('"live";q=7')
    expect((await get(worker, '/denied')).status).toBe(403) // the document does not set deny
    await put(document(8))
    await quotaOf(worker).toBe('"live";q=8')

    for (const wrong of [
      '{ "policies": [',
      'null',
      '[]',
      '{"policies":[{"name":"x"}]}',
      '{"origin":"https://evil.example"}',
    ]) {
      const before = logged(worker, 'live-refused').length
      await put(wrong)
      // Each kind of error is logged once in ten seconds.
      await sleep(1000)
      await quotaOf(worker).toBe('"live";q=8')
      expect(logged(worker, 'live-refused').length - before).toBeLessThanOrEqual(1)
    }
    const codes = logged(worker, 'live-refused').map(({ code }) => code)
    expect(codes).toEqual(['SyntaxError', 'ConfigError'])
    expect(logged(worker, 'live-refused')[1].message).toBe(
      'the live policies are invalid; the current policies stay in force: config: expected an object, got null',
    )
    await put('{"deny":[]}')
    await quotaOf(worker).toBe('"deployed";q=10')
    expect((await get(worker, '/denied')).status).toBe(200)
    await (from === 'kv' ? namespace.delete('rules') : redis.del('rules'))
    await expect
      .poll(async () => (await get(worker, '/denied')).status, { timeout: 15_000 })
      .toBe(403)
    await worker.stop()
  })

  test('A live key of another Redis type is logged once, and the last valid policies are kept.', async () => {
    const worker = await start({ from: 'redis', key: 'typed', every: '100ms' })
    await redis.set('typed', document(7))
    await quotaOf(worker).toBe('"live";q=7')
    await redis.del('typed')
    await redis.rPush('typed', 'a list')
    for (let time = 0; time < 10; time++) {
      await quotaOf(worker).toBe('"live";q=7')
      await sleep(100)
    }
    expect(logged(worker, 'live-unread')).toEqual([
      expect.objectContaining({ code: 'redis-error', suppressed: 0 }),
    ])
    await worker.stop()
  })

  test('Live policies are read at most once in the interval.', async () => {
    const worker = await start({ from: 'redis', key: 'seldom', every: '1h' })
    const gets = () => faults.counts().arrived.get ?? 0
    const before = gets()
    await Promise.all(Array.from({ length: 50 }, () => get(worker)))
    await sleep(200)
    expect(gets() - before).toBe(1)
    await worker.stop()
  })

  test('No request waits for a slow read of live policies.', async () => {
    const worker = await start({ from: 'redis', key: 'slow', every: '100ms' })
    await get(worker, '/allowed')
    await faults.set('hang')
    // A denied request needs no decision of Redis, so it does not wait for Redis at all.
    const began = performance.now()
    for (let time = 0; time < 10; time++) {
      expect((await get(worker, '/denied')).status).toBe(403)
      await sleep(50)
    }
    expect(performance.now() - began).toBeLessThan(4000)
    await faults.set(null)
    await worker.stop()
  })

  test('A missing KV binding is logged once.', async () => {
    const worker = await start({ from: 'kv:NOWHERE', every: '100ms' })
    for (let time = 0; time < 5; time++) {
      await quotaOf(worker).toBe('"deployed";q=10')
      await sleep(100)
    }
    expect(logged(worker, 'live-unread')).toEqual([expect.objectContaining({ code: 'TypeError' })])
    await worker.stop()
  })
})
