/** Limits of single keys, set by operators, and limits from claims. */
import { createClient as connectRedis } from 'redis'
import { describe, expect, test } from 'vitest'
import { createClient } from '../../../src/client/client.ts'
import type { LimitStatus } from '../../../src/core/base/decision.ts'
import type { JsonConfig } from '../../../tools/any-config.ts'
import { API_TOKEN, apiOf, apiTokens, OPERATE } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'
import { sign } from '../../support/issuer.ts'

const SECRET = 'a-secret-of-tokens-of-32-bytes-or-more'
const counted = { limit: 2, window: '1h', overrides: true } as const
const config: JsonConfig = {
  deadline: '10s',
  jwt: { secret: 'JWT_SECRET' },
  policies: [
    { ...counted, name: 'per-ip', penalty: 'manual', match: { path: '/ip' } },
    { ...counted, name: 'log', algorithm: 'sliding-log', match: { path: '/log' } },
    { ...counted, name: 'bucket', algorithm: 'token-bucket', match: { path: '/bucket' } },
    { ...counted, name: 'slots', algorithm: 'concurrency', match: { path: '/slots' } },
    {
      ...counted,
      name: 'leased',
      algorithm: 'fixed-window',
      limit: 100,
      lease: { max: 50, ttl: '5s' },
      match: { path: '/leased' },
    },
    { ...counted, name: 'pair', key: ['query:a', 'query:b'], match: { path: '/pair' } },
    {
      ...counted,
      name: 'claim',
      limit: { claim: 'rate', max: 100, otherwise: 2 },
      limits: { pro: 20 },
      plan: 'jwt:plan',
      key: 'jwt:sub',
      reserve: [{ share: 0.5 }],
      match: { path: '/claim' },
    },
    { name: 'plain', limit: 2, window: '1h', match: { path: '/plain' } },
  ],
}

const gateway = useGateway({ config, env: { ...apiTokens, JWT_SECRET: SECRET } })
const api = apiOf(gateway.fetch)

let clients = 0
const newIp = () => `198.51.100.${++clients}`
const q = (response: Response) =>
  Number(/;q=(\d+)/.exec(response.headers.get('ratelimit-policy') ?? '')?.[1])
const r = (response: Response) =>
  Number(/;r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1])
const limitPath = (name: string, key: string) => `/policies/${name}/keys/${key}/limit`
const call = <T = LimitStatus>(method: string, path: string, body?: unknown) =>
  api.call<T>(path, body, { method, token: OPERATE })
const put = (name: string, key: string, body: unknown) => call('PUT', limitPath(name, key), body)

describe('the limit of a key', () => {
  test.each(['per-ip', 'log', 'bucket', 'slots', 'leased'])(
    '%s: A limit that is set applies to the next request of its key, until it is removed.',
    async (name) => {
      const path = name === 'per-ip' ? '/ip' : `/${name}`
      const [ip, other] = [newIp(), newIp()]
      const own = q(await gateway.fetch(path, { ip }))
      const { status, body } = await put(name, ip, { limit: 60, for: '1d' })
      expect([status, body.limits]).toMatchObject([
        200,
        [{ policy: name, limit: 60, overriddenForMs: 86_400_000 }],
      ])
      const after = await gateway.fetch(path, { ip })
      expect([q(after), r(after) > 50]).toEqual([60, true])
      expect(q(await gateway.fetch(path, { ip: other }))).toBe(own)
      const got = await call('GET', limitPath(name, ip))
      expect(got.body.limits).toMatchObject([{ limit: 60 }])
      expect(got.body.limits[0]!.overriddenForMs).toBeLessThanOrEqual(86_400_000)
      const removed = await call('DELETE', limitPath(name, ip))
      expect(removed.body.limits).toMatchObject([{ limit: own }])
      expect(removed.body.limits[0]).not.toHaveProperty('overriddenForMs')
      expect(q(await gateway.fetch(path, { ip }))).toBe(own)
    },
  )

  test('A lower limit refuses at once, and a refusal is not repeated after the limit was raised.', async () => {
    const ip = newIp()
    expect((await gateway.fetch('/ip', { ip })).status).toBe(200)
    await put('per-ip', ip, { limit: 1, for: '1h' })
    const refused = await gateway.fetch('/ip', { ip })
    expect([refused.status, q(refused), r(refused)]).toEqual([429, 1, 0])
    await put('per-ip', ip, { limit: 5, for: '1h' })
    expect((await gateway.fetch('/ip', { ip })).status).toBe(200)
  })

  test('A limit ends by itself.', async () => {
    const ip = newIp()
    await put('per-ip', ip, { limit: 50, for: 1 })
    await expect.poll(async () => q(await gateway.fetch('/ip', { ip }))).toBe(2)
  })

  test('A reset and a ban keep the limit.', async () => {
    const ip = newIp()
    await put('per-ip', ip, { limit: 9, for: '1h' })
    await gateway.fetch('/ip', { ip })
    const { body } = await api.operate<LimitStatus>('per-ip', 'reset', { key: ip })
    expect(body.limits).toMatchObject([{ limit: 9, remaining: 9 }])
    const banned = await api.operate<LimitStatus>('per-ip', 'ban', { key: ip, for: '1m' })
    expect(banned.body.limits).toMatchObject([{ limit: 9, bannedForMs: 60_000 }])
  })

  test('The values of a key are separated by commas, and its own commas are encoded.', async () => {
    const set = await put('pair', 'a%2Cb%2Fc%3B.,d%252Ce', { limit: 7, for: '1h' })
    expect([set.status, set.body]).toMatchObject([200, { limits: [{ limit: 7 }] }])
    expect(q(await gateway.fetch('/pair?a=a%2Cb%2Fc%3B.&b=d%252Ce'))).toBe(7)
    expect(q(await gateway.fetch('/pair?a=a&b=b%2Fc%3B.%2Cd%252Ce'))).toBe(2)
    expect((await put('pair', 'a', { limit: 7, for: '1h' })).status).toBe(422)
    expect((await put('pair', 'a,%ff', { limit: 7, for: '1h' })).status).toBe(400)
  })

  test('The list has every limit in force by the subject of its key, and a subject can be changed.', async () => {
    const list = async () =>
      (
        await call<{ overrides: { subject: string; limit: number; overriddenForMs: number }[] }>(
          'GET',
          '/policies/bucket/keys',
        )
      ).body.overrides
    expect(await list()).toEqual([])
    const [one, two, brief] = [newIp(), newIp(), newIp()]
    await put('bucket', one, { limit: 11, for: '1h' })
    await put('bucket', two, { limit: 12, for: '2h' })
    await put('bucket', two, { limit: 13, for: '3h' })
    await put('bucket', brief, { limit: 14, for: 1 })
    await expect.poll(async () => (await list()).map(({ limit }) => limit)).toEqual([11, 13])
    const [first, second] = await list()
    expect(first!.subject).toMatch(/^[\w-]{16}$/)
    expect(second!.overriddenForMs).toBeGreaterThan(3 * 3_600_000 - 60_000)
    await put('bucket', `subject:${first!.subject}`, { limit: 15, for: '1h' })
    expect(q(await gateway.fetch('/bucket', { ip: one }))).toBe(15)
    await call('DELETE', limitPath('bucket', `subject:${second!.subject}`))
    expect(q(await gateway.fetch('/bucket', { ip: two }))).toBe(2)
    expect((await list()).map(({ limit }) => limit)).toEqual([15])
    for (const odd of [`${first!.subject}a`, 'a', ''])
      expect((await put('bucket', `subject:${odd}`, { limit: 15, for: '1h' })).status).toBe(422)
  })

  test('A policy without overrides answers 409, and an unknown one 404.', async () => {
    expect((await put('plain', newIp(), { limit: 5, for: '1h' })).status).toBe(409)
    expect((await call('GET', '/policies/plain/keys')).status).toBe(409)
    expect((await put('none', newIp(), { limit: 5, for: '1h' })).status).toBe(404)
    expect((await call('GET', '/policies/none/keys')).status).toBe(404)
    const deleted = await call('DELETE', '/policies/plain/keys')
    expect([deleted.status, deleted.headers.get('allow')]).toEqual([405, 'GET'])
  })

  test.each([
    [{ for: '1h' }, 'limit'],
    [{ limit: 5 }, 'for'],
    [{ limit: 0, for: '1h' }, 'limit'],
    [{ limit: 1.5, for: '1h' }, 'limit'],
    [{ limit: 5, for: 0 }, 'for'],
    [{ limit: 5, for: 'for ever' }, 'for'],
    [{ limit: 5, for: '4000d' }, 'for'],
    [{ limit: 10_001, for: '1h' }, 'limit'],
    [{ limit: 5, for: '1h', key: 'x' }, 'key'],
  ])('The answer to the invalid body %j names its field %s.', async (body, path) => {
    const answer = await put('log', newIp(), body)
    expect([answer.status, answer.body]).toMatchObject([422, { errors: [{ path }] }])
  })

  test('Only the token of operators may set limits, and only by PUT, GET and DELETE.', async () => {
    const path = limitPath('per-ip', newIp())
    const body = { limit: 5, for: '1h' }
    const as = (token: string | null, method: string) => api.call(path, body, { token, method })
    expect((await as(API_TOKEN, 'PUT')).status).toBe(403)
    expect((await as(null, 'PUT')).status).toBe(401)
    const posted = await as(OPERATE, 'POST')
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, PUT, DELETE'])
  })

  test('The client library sets, reads, lists and removes limits.', async () => {
    const { overrides } = createClient({
      url: 'http://localhost',
      token: OPERATE,
      deadlineMs: 10_000,
      fetch: (url, init) => gateway.fetch(String(url), init),
    })
    const key = ['x,y', 'z/'] as const
    expect(await overrides.set('pair', [...key], { limit: 8, for: '1h' })).toMatchObject({
      limits: [{ limit: 8, overriddenForMs: 3_600_000 }],
    })
    expect(await overrides.get('pair', [...key])).toMatchObject({ limits: [{ limit: 8 }] })
    expect((await overrides.list('pair')).overrides.map(({ limit }) => limit)).toContain(8)
    expect(await overrides.remove('pair', [...key])).toMatchObject({ limits: [{ limit: 2 }] })
    await expect(overrides.set('plain', 'x', { limit: 8, for: '1h' })).rejects.toMatchObject({
      status: 409,
    })
  })
})

describe('the limit of a claim', () => {
  const ask = async (claims: object, secret = SECRET) => {
    const token = await sign(claims, { alg: 'HS256' }, Buffer.from(secret))
    return gateway.fetch('/claim', { headers: { authorization: `Bearer ${token}` } })
  }

  test('An operator precedes the claim, the claim the plan, and the plan otherwise.', async () => {
    const sub = 'ann'
    expect(q(await ask({ sub }))).toBe(2)
    expect(q(await ask({ sub, plan: 'pro' }))).toBe(20)
    expect(q(await ask({ sub, plan: 'pro', rate: 40 }))).toBe(40)
    expect(q(await ask({ sub, rate: 1000 }))).toBe(100)
    expect(q(await ask({ sub: 'eve', rate: 1000 }, 'another secret of at least 32 bytes'))).toBe(2)
    await put('claim', sub, { limit: 60, for: '1h' })
    const response = await ask({ sub, plan: 'pro', rate: 40 })
    expect([q(response), r(response)]).toEqual([60, 25]) // half of 60 must stay free, and 5 are used
  })

  test('A client keeps its charges when its next token has another limit.', async () => {
    const sub = 'bob'
    for (let n = 0; n < 5; n++) expect((await ask({ sub, rate: 10 })).status).toBe(200)
    expect((await ask({ sub, rate: 10 })).status).toBe(429)
    expect(r(await ask({ sub, rate: 20 }))).toBe(4)
    expect((await ask({ sub, rate: 8 })).status).toBe(429)
  })
})

test('Records contain no key of a client, and the list is empty again when all limits have ended.', async () => {
  const redis = await connectRedis({ url: gateway.redis.url }).connect()
  try {
    const ip = newIp()
    await put('per-ip', ip, { limit: 5, for: '1h' })
    const keys = await redis.keys('sluice:1:*')
    const texts = await Promise.all(keys.map((key) => redis.get(key).catch(() => '')))
    expect([...keys, ...texts].join()).not.toContain(ip)
    expect(await redis.pTTL(keys[0]!)).toBeGreaterThan(0)
  } finally {
    redis.destroy()
  }
})
