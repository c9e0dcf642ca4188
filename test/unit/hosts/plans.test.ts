/** Limits by plan, and policies that change without a deployment: from Redis and from KV. */
import fc from 'fast-check'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../../src/core/config/options.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import type { JsonConfig } from '../../../tools/any-config.ts'
import { type Faults, startFaults } from '../../support/fault-proxy/index.ts'
import { type Isolate, useGateway } from '../../support/gateway.ts'
import { sign } from '../../support/issuer.ts'

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
    ...(['query', 'cookie'] as const).map((source) => ({
      name: source,
      limit: 5,
      window: '1h' as const,
      limits,
      plan: `${source}:plan` as const,
      match: { path: `/${source}` },
    })),
    {
      name: 'own',
      limit: { claim: 'rate', max: 50, otherwise: 5 },
      window: '1h',
      limits,
      plan: 'header:x-plan',
      match: { path: '/own' },
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

const clock = new TestClock()
const gateway = useGateway({ config, env: { JWT_SECRET: SECRET }, clock })

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
    ['/header', { 'x-plan': 'pro, pro' }, 3],
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
    const response = await gateway.fetch(path, { headers, ip: newClient() })
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit-policy')).toMatch(`;q=${limit};`)
    expect(left(response)).toBe(limit - 1)
  })

  test('A claim selects a plan only if the token is verified.', async () => {
    const ask = async (claims: object, secret = SECRET) => {
      const token = await sign(claims, { alg: 'HS256' }, Buffer.from(secret))
      return left(await gateway.fetch('/claim', { headers: { authorization: `Bearer ${token}` } }))
    }
    expect(await ask({ sub: 'ann', plan: 'pro' })).toBe(99)
    expect(await ask({ sub: 'bob' })).toBe(4)
    expect(await ask({ sub: 'cat', plan: ['pro'] })).toBe(4)
    expect(await ask({ sub: 'dan', plan: 'pro' }, 'another secret of at least 32 bytes')).toBe(4)
  })

  test('A request whose plan cannot be read for certain has the smallest limit that it may have.', async () => {
    const token = (plan: string) =>
      sign({ sub: plan, plan, rate: 2 }, { alg: 'HS256' }, Buffer.from(SECRET))
    const [free, pro] = await Promise.all([token('free'), token('pro')])
    const cases: [path: string, headers: [string, string][], limit: number][] = [
      [
        '/header',
        [
          ['x-plan', 'pro'],
          ['x_plan', 'y'],
        ],
        3,
      ],
      [
        '/header',
        [
          ['x-plan', 'free'],
          ['x.plan', 'pro'],
        ],
        3,
      ],
      [
        '/header',
        [
          ['x-plan', 'free'],
          ['x-plan', 'y'],
        ],
        3,
      ],
      [
        '/header',
        [
          ['x-plan', 'y'],
          ['x-plan', 'free'],
        ],
        3,
      ],
      [
        '/header',
        [
          ['x-plan', 'free'],
          ['x-plan', 'free'],
        ],
        3,
      ],
      ['/header', [['x-plan', 'free,']], 3],
      [
        '/header',
        [
          ['x-plan', 'pro'],
          ['x-plan', 'y'],
        ],
        3,
      ],
      [
        '/table',
        [
          ['x-customer', 'globex'],
          ['x-customer', 'y'],
        ],
        3,
      ],
      [
        '/table',
        [
          ['x-customer', 'acme'],
          ['x_customer', 'y'],
        ],
        3,
      ],
      ['/query?plan=free&plan[]=z', [], 3],
      ['/query?plan=pro&plan=z', [], 3],
      ['/query?plan=pro&Plan=z', [], 3],
      ['/query?plan=free', [], 3],
      ['/query?plan=z', [], 5],
      ['/cookie', [['cookie', 'plan=pro; plan=free']], 3],
      ['/claim', [['authorization', `Bearer ${pro} ,x`]], 3],
      ['/claim', [['authorization', `Bearer ${free}, Bearer ${pro}`]], 3],
      ['/own', [['authorization', `Bearer ${pro} ,x`]], 3],
      ['/own', [['authorization', `Bearer ${pro}`]], 2],
      ['/own', [], 5],
    ]
    for (const [path, headers, limit] of cases) {
      const response = await gateway.fetch(path, {
        headers: Object.fromEntries(new Headers(headers)),
        ip: newClient(),
      })
      const policy = response.headers.get('ratelimit-policy')
      expect(policy, JSON.stringify([path, headers])).toMatch(`;q=${limit};`)
    }
  })

  test('For any lines of the field, a request has no larger limit than with one of them alone.', async () => {
    const names = ['free', 'pro', 'y', '', 'free,pro'] as const
    const alone = { free: 3, pro: 100, y: 5, '': 5, 'free,pro': 3 }
    const line = fc.tuple(fc.constantFrom('x-plan', 'X-Plan', 'x_plan'), fc.constantFrom(...names))
    const lines = fc.array(line, { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(lines, async (sent) => {
        const headers = Object.fromEntries(new Headers(sent))
        const response = await gateway.fetch('/header', { headers, ip: newClient() })
        const limit = Number(/q=(\d+)/.exec(response.headers.get('ratelimit-policy')!)![1])
        const all = sent.filter(([, value]) => value).map(([, value]) => alone[value])
        expect(limit).toBeLessThanOrEqual(Math.min(...(all.length > 0 ? all : [5])))
      }),
      { numRuns: 50 },
    )
  })

  test('A client that changes its plan keeps its charges.', async () => {
    const ip = newClient()
    const ask = (plan: string) => gateway.fetch('/header', { ip, headers: { 'x-plan': plan } })
    for (let time = 0; time < 3; time++) expect((await ask('free')).status).toBe(200)
    expect((await ask('free')).status).toBe(429)
    expect(left(await ask('pro'))).toBe(96)
    expect((await ask('free')).status).toBe(429)
  })

  test('A plan of a gcra policy changes the rate, and requests stay evenly spaced.', async () => {
    const ask = (ip: string) => gateway.fetch('/spaced', { ip, headers: { 'x-plan': 'pro' } })
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
  let faults: Faults
  let redis: Awaited<ReturnType<typeof connect>>
  const connect = () => createClient({ url: gateway.redis.url }).connect()
  beforeAll(async () => {
    faults = await startFaults({ target: gateway.bridge.url })
    redis = await connect()
  })
  afterAll(async () => {
    redis?.destroy()
    await faults?.close()
  })

  const document = (limit: number) =>
    JSON.stringify({ policies: [{ name: 'live', limit, window: '1h' }] })
  const deployed: ConfigOptions = {
    deny: { path: '/denied' },
    policies: [{ name: 'deployed', limit: 10, window: '1h' }],
  }
  function start(live: ConfigOptions['live'], env: Record<string, unknown> = {}) {
    const isolate = gateway.start({ ...deployed, live }, { env })
    return {
      ...isolate,
      fetch: (path: string, ip = newClient()) =>
        isolate.fetch(path, { ip }, { UPSTASH_REDIS_REST_URL: faults.url }),
    }
  }
  /** Sends a request a second later. It reads the document. */
  async function refresh({ fetch, settled }: ReturnType<typeof start>) {
    clock.advance(1_000)
    await fetch('/')
    await settled()
  }
  /** The quota after the document has been read. */
  async function quotaOf(isolate: ReturnType<typeof start>) {
    await refresh(isolate)
    const { headers } = await isolate.fetch('/')
    return /"(.*?)";q=(\d+)/.exec(headers.get('ratelimit-policy')!)?.[0]
  }
  const logged = ({ logs }: Pick<Isolate, 'logs'>, event: string) =>
    logs.map((line) => JSON.parse(line)).filter((line) => line.event === event)

  test.each(['redis', 'kv'])('Live policies from %s override the deployed ones.', async (from) => {
    const values = new Map<string, string>()
    const RULES = { get: async (key: string) => values.get(key) ?? null }
    const isKv = from === 'kv'
    const live = { from: isKv ? 'kv:RULES' : 'redis', key: 'rules', every: '1s' } as const
    const isolate = start(live, { RULES })
    const put = async (text: string) =>
      isKv ? void values.set('rules', text) : void (await redis.set('rules', text))
    const statusOf = async (path: string) => (await isolate.fetch(path)).status
    expect(await quotaOf(isolate)).toBe('"deployed";q=10')
    await put(document(7))
    expect(await quotaOf(isolate)).toBe('"live";q=7')
    expect(await statusOf('/denied')).toBe(403) // the document does not set deny
    await put(document(8))
    expect(await quotaOf(isolate)).toBe('"live";q=8')

    for (const wrong of [
      '{ "policies": [',
      'null',
      '[]',
      '{"policies":[{"name":"x"}]}',
      '{"origin":"https://evil.example"}',
    ]) {
      await put(wrong)
      expect(await quotaOf(isolate)).toBe('"live";q=8')
    }
    // Each kind of error is logged once in ten seconds.
    expect(logged(isolate, 'live-refused').map(({ code }) => code)).toEqual([
      'SyntaxError',
      'ConfigError',
    ])
    expect(logged(isolate, 'live-refused')[1].message).toBe(
      'the live policies are invalid; the current policies stay in force: config: expected an object, got null',
    )
    await put('{"deny":[]}')
    expect(await quotaOf(isolate)).toBe('"deployed";q=10')
    expect(await statusOf('/denied')).toBe(200)
    if (isKv) values.delete('rules')
    else await redis.del('rules')
    await refresh(isolate)
    expect(await statusOf('/denied')).toBe(403)
  })

  test('A live key of another Redis type is logged once, and the last valid policies are kept.', async () => {
    const isolate = start({ from: 'redis', key: 'typed', every: '1s' })
    await redis.set('typed', document(7))
    expect(await quotaOf(isolate)).toBe('"live";q=7')
    await redis.del('typed')
    await redis.rPush('typed', 'a list')
    for (let time = 0; time < 3; time++) expect(await quotaOf(isolate)).toBe('"live";q=7')
    expect(logged(isolate, 'live-unread')).toEqual([
      expect.objectContaining({ code: 'redis-error', suppressed: 0 }),
    ])
  })

  test('Live policies are read at most once in the interval, and no request waits for a slow read.', async () => {
    const isolate = start({ from: 'redis', key: 'seldom', every: '1h' })
    const gets = () => faults.counts().arrived.get ?? 0
    const before = gets()
    await Promise.all(Array.from({ length: 50 }, () => isolate.fetch('/')))
    await isolate.settled()
    expect(gets() - before).toBe(1)
    await faults.set('hang')
    clock.advance('1h')
    // A denied request needs no decision of Redis, so it does not wait for Redis at all.
    const began = performance.now()
    for (let time = 0; time < 10; time++) expect((await isolate.fetch('/denied')).status).toBe(403)
    expect(performance.now() - began).toBeLessThan(4000)
    await expect.poll(() => gets() - before).toBe(2)
    await faults.set(null)
  })

  test('A missing KV binding is logged once.', async () => {
    const isolate = start({ from: 'kv:NOWHERE', every: '1s' })
    for (let time = 0; time < 3; time++) expect(await quotaOf(isolate)).toBe('"deployed";q=10')
    expect(logged(isolate, 'live-unread')).toEqual([expect.objectContaining({ code: 'TypeError' })])
  })
})
