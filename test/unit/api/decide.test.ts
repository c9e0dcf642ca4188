/** `POST /_sluice/v1/decide` through the front door: the Worker in workerd, the bridge, a real Redis. */
import { createClient } from 'redis'
import { parseList } from 'structured-headers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LimitStatus } from '../../../src/base/decision.ts'
import { type Api, startApi } from '../../support/api-stack.ts'
import { commandsBetween } from '../../support/commands.ts'

const policy = { limit: 3, window: '1h', algorithm: 'fixed-window' } as const
let api: Api
beforeAll(async () => {
  api = await startApi({
    deny: { name: 'abuse', ip: '192.0.2.66' },
    tables: { plans: { acme: 'pro' } },
    policies: [
      { ...policy, name: 'per-ip', match: { host: 'www.example.com', path: '/a/*' } },
      { ...policy, name: 'by-two', key: ['ip', 'path'], match: { host: 'none.example' } },
      { ...policy, name: 'by-user', key: 'jwt:sub', match: { host: 'none.example' } },
      { ...policy, name: 'by-host', key: 'host', match: { path: '/by-host' } },
      { ...policy, name: 'by-path', key: 'path', match: { path: '/by-path/*' } },
      { ...policy, name: 'by-colo', key: 'colo', match: { path: '/by-colo' } },
      { ...policy, name: 'by-name', key: 'path:name', match: { path: '/named/:name' } },
      { ...policy, name: 'by-api-key', key: 'api-key', match: { path: '/by-api-key' } },
      {
        ...policy,
        name: 'planned',
        limits: { pro: 5 },
        plan: { key: 'header:x-customer', table: 'plans' },
        key: 'header:x-customer',
        match: { path: '/planned' },
      },
      { ...policy, name: 'ghost', limit: 1, mode: 'shadow', match: { path: '/ghost' } },
      {
        ...policy,
        name: 'priced',
        cost: { header: 'x-price', otherwise: 1 },
        match: { path: '/priced' },
      },
      {
        ...policy,
        name: 'slow',
        algorithm: 'concurrency',
        limit: 2,
        window: '1m',
        match: { path: '/slow' },
      },
      {
        ...policy,
        name: 'shut',
        match: { path: '/shut' },
        key: 'header:x-key',
        onMissingKey: 'refuse',
      },
      ...['x', 'y', 'z'].map((name) => ({
        ...policy,
        name,
        key: `header:${name}` as const,
        match: { path: '/wide' },
      })),
    ],
    jwt: { secret: 'JWT_SECRET' },
  })
})
afterAll(() => api?.stop())

let clients = 0
const newIp = () => `198.51.${Math.floor(++clients / 250)}.${clients % 250}`
const request = (ip: string, path = '/a/b', more = {}) => ({
  request: { url: `https://www.example.com${path}`, ip, ...more },
})

describe('one request', () => {
  test('is decided as the proxy would, down to the fields of the answer', async () => {
    const ip = newIp()
    for (const remaining of [2, 1, 0]) {
      const { status, body, headers } = await api.decide(request(ip))
      expect([status, body.allowed, body.reason]).toEqual([200, true, 'within-limit'])
      expect(body.limits).toMatchObject([
        { policy: 'per-ip', remaining, limit: 3, windowMs: 3_600_000, cost: 1 },
      ])
      expect(body.decidedAt).toBeGreaterThan(Date.now() - 60_000)
      expect(parseList(headers.get('ratelimit')!)[0]![1].get('r')).toBe(remaining)
      expect(headers.has('retry-after')).toBe(false)
    }
    const { status, body, headers } = await api.decide(request(ip))
    expect([status, body.allowed, body.reason]).toEqual([429, false, 'limited'])
    expect(Number(headers.get('retry-after'))).toBe(Math.ceil(body.retryAfterMs! / 1000))
    expect(headers.get('content-type')).toContain('application/json')
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('shares its quota with the same request through the proxy', async () => {
    const ip = newIp()
    await api.decide(request(ip, '/priced'))
    const through = await api.stack.fetch('/priced', { ip })
    expect(parseList(through.headers.get('ratelimit')!)[0]![1].get('r')).toBe(1)
    expect((await api.decide(request(ip, '/priced'))).body.limits[0]!.remaining).toBe(0)
  })

  test('costs one HTTP request to Redis, and no more commands than through the proxy', async () => {
    const before = api.stack.httpRequests()
    const commands = await commandsBetween(api.stack.redis.url, () => api.decide(request(newIp())))
    expect(api.stack.httpRequests() - before).toBe(1)
    const { eval: first = 0, evalsha = 0, ...others } = commands
    expect(first + evalsha).toBe(1)
    expect(others).toEqual({ time: 1, mget: 1, set: 1 })
  })

  test('that is only looked at is charged nothing', async () => {
    const ip = newIp()
    for (let time = 0; time < 3; time++) {
      const { body } = await api.decide({ ...request(ip), mode: 'peek' })
      expect(body.limits[0]!.remaining).toBe(2 + 1)
    }
    const costly = await api.decide({ ...request(ip), mode: 'peek', cost: 4 })
    expect([costly.status, costly.body.retryAfterMs]).toEqual([429, null])
  })

  test('meets no policy, or one in shadow, or a list, or lacks its key: each is told', async () => {
    const ip = newIp()
    expect((await api.decide(request(ip, '/none'))).body).toEqual({
      allowed: true,
      reason: 'no-policy',
      retryAfterMs: 0,
      limits: [],
    })
    await api.decide(request(ip, '/ghost'))
    const shadow = await api.decide(request(ip, '/ghost'))
    expect([shadow.status, shadow.body.limits[0]!.allowed]).toEqual([200, false])
    const denied = await api.decide(request('192.0.2.66'))
    expect([denied.status, denied.body.reason, denied.body.denied]).toEqual([
      429,
      'denied',
      { by: 'abuse' },
    ])
    const lacking = await api.decide(request(ip, '/shut'))
    expect([lacking.status, lacking.body.denied]).toEqual([
      429,
      { by: 'shut', missing: 'header:x-key' },
    ])
  })

  test('costs what the caller says, and never what its own headers say', async () => {
    const ip = newIp()
    const said = { headers: { 'x-price': '0', 'Sluice-Token': 'a-api-token-for-tests' } }
    expect((await api.decide(request(ip, '/priced', said))).body.limits[0]).toMatchObject({
      cost: 1,
      remaining: 2,
    })
    expect(
      (await api.decide({ ...request(ip, '/priced', said), cost: 2 })).body.limits[0],
    ).toMatchObject({ cost: 2, remaining: 0 })
  })

  test('cannot pass for another client by headers it brings along', async () => {
    const ip = newIp()
    const spoofed = { headers: { 'CF-Connecting-IP': newIp(), 'X-Forwarded-For': newIp() } }
    await api.decide(request(ip))
    expect((await api.decide(request(ip, '/a/b', spoofed))).body.limits[0]!.remaining).toBe(1)
  })

  test('takes the plan of its customer', async () => {
    const { body } = await api.decide(
      request(newIp(), '/planned', { headers: { 'x-customer': 'acme' } }),
    )
    expect(body.limits[0]).toMatchObject({ limit: 5, remaining: 4 })
  })
})

describe('one policy by hand', () => {
  test('counts on the quota that a request would count on', async () => {
    const ip = newIp()
    await api.decide(request(ip))
    const { body } = await api.decide({ policy: 'per-ip', key: ip })
    expect(body.limits).toMatchObject([{ policy: 'per-ip', remaining: 1 }])
  })

  test.each([
    [
      { policy: 'by-two', key: ['203.0.113.9', '/X//y/../z;v=1'] },
      { policy: 'by-two', key: ['203.0.113.9', '/x/z'] },
    ],
    [
      { policy: 'per-ip', key: '2001:db8::1' },
      { policy: 'per-ip', key: '2001:DB8:0:0:ffff::2' },
    ],
    [
      { policy: 'per-ip', key: '2001:db8:7::/64' },
      { policy: 'per-ip', key: ['2001:db8:7::9'] },
    ],
    [
      { policy: 'by-user', key: 7 },
      { policy: 'by-user', key: '7' },
    ],
    [
      { policy: 'by-user', key: [null] },
      { policy: 'by-user', key: '' },
    ],
  ])('%j and %j are one quota', async (one, other) => {
    expect((await api.decide(one)).body.limits[0]!.remaining).toBe(2)
    expect((await api.decide(other)).body.limits[0]!.remaining).toBe(1)
  })

  const hex = 'ab'.repeat(32)
  const at = (url: string, more = {}) => ({ request: { url: `https://${url}`, ...more } })
  test.each([
    ['by-host', 'Shop.Example.com.:8443', at('shop.example.com:8443/by-host')],
    ['by-host', 'münchen.example', at('münchen.example/by-host')],
    ['by-host', '[2001:DB8:0::1]', at('[2001:db8::1]/by-host')],
    ['by-path', '/by-path/A%2FB/../x;y?q#f', at('a.example/by-path/A%2FB/../x;y?q#f')],
    ['by-path', '/by-path/ö 100%', at('a.example/by-path/%C3%B6%20100%25')],
    ['by-colo', 'fra', at('a.example/by-colo', { colo: 'FRA' })],
    ['by-colo', 'AMS', at('a.example/by-colo', { colo: 'ams' })],
    ['by-name', 'Jörg;v=1', at('a.example/named/J%C3%B6rg;v=1')],
    ['by-name', 'a/b', at('a.example/named/a%2Fb')],
    ['by-name', '100%', at('a.example/named/100%25')],
    ['by-name', 'a%2fc', at('a.example/named/a%2Fc')],
    // Of 64 hexadecimal digits, as many keys are: it is no digest for that.
    ['by-api-key', hex, at('a.example/by-api-key', { headers: { 'x-api-key': hex } })],
  ])('%s: %j and what a request says of it are one quota', async (name, key, asked) => {
    expect((await api.decide(asked)).body.limits[0]!.remaining).toBe(2)
    expect((await api.decide({ policy: name, key })).body.limits[0]!.remaining).toBe(1)
  })

  test('an API key may be told by its digest', async () => {
    const asked = at('a.example/by-api-key', { headers: { 'x-api-key': 'somebody-s-key' } })
    await api.decide(asked)
    const tried = await api.operate<{ key: { value: string }[] }>('by-api-key', 'try', asked)
    const key = `sha256:${tried.body.key[0]!.value}`
    expect((await api.decide({ policy: 'by-api-key', key })).body.limits[0]!.remaining).toBe(1)
  })

  test('has the limit of the plan that is named', async () => {
    const { body } = await api.decide({ policy: 'planned', key: 'somebody', plan: 'pro' })
    expect(body.limits[0]).toMatchObject({ limit: 5, remaining: 4 })
  })

  test.each([
    [{ policy: 'none', key: 'x' }, 'policy', 'the name of a policy'],
    [{ policy: 'per-ip', key: 'x' }, 'key', 'an IP address, or a network that has one quota'],
    [{ policy: 'per-ip', key: 10 }, 'key', 'an IP address, or a network that has one quota'],
    [
      { policy: 'per-ip', key: '010.0.0.1' },
      'key',
      'an IP address, or a network that has one quota',
    ],
    [
      { policy: 'per-ip', key: '203.0.113.0/24' },
      'key',
      'an IP address, or a network that has one quota',
    ],
    [
      { policy: 'per-ip', key: '2001:db8::/32' },
      'key',
      'an IP address, or a network that has one quota',
    ],
    [{ policy: 'by-host', key: 'a.example/x' }, 'key', 'a host'],
    [{ policy: 'per-ip', key: ['203.0.113.1', 'b'] }, 'key', 'a value for each of ip'],
    [{ policy: 'by-two', key: ['203.0.113.1', 'b'] }, 'key[1]', 'a path that begins with /'],
    [
      { policy: 'per-ip', key: '203.0.113.1', plan: 'pro' },
      'plan',
      'nothing (the policy has no plans)',
    ],
    [{ policy: 'planned', key: 'a', plan: 'prp' }, 'plan', 'one of pro'],
    [
      { policy: 'shut', key: [null] },
      'key[0]',
      'a value (a request without header:x-key has no quota of this key)',
    ],
  ])('%j is refused: %s', async (ask, path, expected) => {
    const { status, body } = await api.call<{ errors: object[] }>('/decide', ask)
    expect([status, body.errors]).toMatchObject([422, [{ path, expected }]])
    const many = await api.call<{ errors: object[] }>('/decide', [
      { policy: 'by-user', key: 'ok' },
      ask,
    ])
    expect([many.status, many.body.errors]).toMatchObject([422, [{ path: `[1].${path}` }]])
  })
})

describe('a batch', () => {
  test('of 100 with three subjects each is one HTTP request to Redis', async () => {
    await api.decide(request(newIp()))
    const before = api.stack.httpRequests()
    const { status, body } = await api.decideEach(
      Array.from({ length: 100 }, (_, n) =>
        request(newIp(), '/wide', { headers: { x: `x${n}`, y: `y${n}`, z: `z${n}` } }),
      ),
    )
    expect(api.stack.httpRequests() - before).toBe(1)
    expect([status, body.length]).toEqual([200, 100])
    for (const decision of body) {
      expect(decision.limits.map(({ remaining }) => remaining)).toEqual([2, 2, 2])
      expect(decision.decidedAt).toBeGreaterThan(0)
    }
  })

  test('is decided in order, each seeing what those before it took, and refuses alone', async () => {
    const [ip, other] = [newIp(), newIp()]
    const { body, headers } = await api.decideEach([
      ...Array.from({ length: 4 }, () => request(ip)),
      request(other),
      request(ip, '/none'),
      { ...request(ip), mode: 'peek' },
      request('192.0.2.66'),
    ])
    expect(body.map(({ allowed, limits }) => [allowed, limits[0]?.remaining])).toEqual([
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
      [true, 2],
      [true, undefined],
      [false, 0],
      [false, undefined],
    ])
    expect(headers.has('ratelimit')).toBe(false)
  })

  test('with a fault anywhere charges nobody', async () => {
    const ip = newIp()
    const { status } = await api.decideEach([request(ip), { policy: 'none', key: 'a' }])
    expect(status).toBe(422)
    expect((await api.decide(request(ip))).body.limits[0]!.remaining).toBe(2)
  })
})

describe('an Idempotency-Key', () => {
  const once = (key: string) => ({ headers: { 'Idempotency-Key': key } })

  test('makes one call of its repetitions, fifty at once or one after the other', async () => {
    const ip = newIp()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => api.decide(request(ip), once('fifty'))),
    )
    const later = await api.decide(request(ip), once('fifty'))
    for (const { status, body } of [...answers, later]) {
      expect([status, body]).toEqual([200, answers[0]!.body])
    }
    expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
    expect(later.headers.get('idempotent-replayed')).toBe('true')
    expect((await api.decide(request(ip))).body.limits[0]!.remaining).toBe(1)
  })

  test('costs one command more, and a repetition fewer than a decision', async () => {
    const ip = newIp()
    const [first, second] = [
      await commandsBetween(api.stack.redis.url, () => api.decide(request(ip), once('commands'))),
      await commandsBetween(api.stack.redis.url, () => api.decide(request(ip), once('commands'))),
    ]
    expect(first).toEqual({ evalsha: 1, time: 1, mget: 1, set: 2 })
    expect(Object.values(second).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(3)
  })

  test('keeps a refusal, too, and the slots that were taken', async () => {
    const ip = newIp()
    for (let time = 0; time < 3; time++) await api.decide(request(ip))
    const refused = await api.decide(request(ip), once('refused'))
    expect((await api.decide(request(ip), once('refused'))).body).toEqual(refused.body)
    const held = await api.decide(request(ip, '/slow'), once('slots'))
    const again = await api.decide(request(ip, '/slow'), once('slots'))
    expect(again.body).toEqual(held.body)
    expect(held.body.slot).toBeTypeOf('string')
    expect(
      (await api.decide({ ...request(ip, '/slow'), mode: 'peek' })).body.limits[0]!.remaining,
    ).toBe(1)
  })

  test('covers a batch as a whole', async () => {
    const asks = Array.from({ length: 100 }, (_, n) =>
      request(newIp(), '/wide', { headers: { x: `bx${n}`, y: `by${n}`, z: `bz${n}` } }),
    )
    const first = await api.decideEach(asks, once('batch'))
    const second = await api.decideEach(asks, once('batch'))
    expect(second.body).toEqual(first.body)
    expect(second.headers.get('idempotent-replayed')).toBe('true')
  })

  test('forgotten and used again holds slots of its own', async () => {
    const ip = newIp()
    await api.decide(request(ip, '/slow'), once('again'))
    const redis = createClient({ url: api.stack.redis.url })
    await redis.connect()
    for (const key of await redis.keys('sluice:1:{once-*')) await redis.del(key)
    redis.destroy()
    const { status } = await api.decide({ ...request(ip, '/slow'), cost: 2 }, once('again'))
    expect(status).toBe(429)
  })

  test('with another body is refused, and with another token is another key', async () => {
    const ip = newIp()
    await api.decide(request(ip), once('reused'))
    const other = await api.call<{ errors: object[] }>('/decide', request(newIp()), once('reused'))
    expect([other.status, other.body.errors]).toMatchObject([422, [{ path: 'Idempotency-Key' }]])
  })

  test('after a change of policies is refused: the numbers were of others', async () => {
    const ip = newIp()
    await api.decide(request(ip), once('changed'))
    const { url, token } = api.stack.bridge
    const database = { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token }
    const changed = await startApi({ policies: [{ ...policy, name: 'another' }] }, database)
    try {
      expect((await changed.decide(request(ip), once('changed'))).status).toBe(422)
    } finally {
      await changed.stop()
    }
  })

  test.each(['', 'x'.repeat(256), 'a b', 'é'])('%j is refused', async (key) => {
    const { status } = await api.decide(request(newIp()), once(key))
    expect(status).toBe(400)
  })
})

describe('what was taken', () => {
  test('is given back whole or in part, never above the quota, and not into a later window', async () => {
    const ip = newIp()
    const { body } = await api.decide({ ...request(ip), cost: 3 })
    const back = (cost: number, decidedAt = body.decidedAt) =>
      api.call<{ decidedAt: number; limits: { remaining: number }[] }>('/refund', {
        ...request(ip),
        cost,
        decidedAt,
      })
    expect((await back(2)).body.limits).toMatchObject([{ policy: 'per-ip', remaining: 2 }])
    expect((await back(5)).body.limits).toMatchObject([{ remaining: 3 }])
    await api.decide(request(ip))
    expect((await back(1, body.decidedAt! - 3_600_000)).body.limits).toMatchObject([
      { remaining: 2 },
    ])
  })

  test('is given back by hand, in lists, once for an Idempotency-Key', async () => {
    const [ip, other] = [newIp(), newIp()]
    for (const one of [ip, other]) await api.decide({ ...request(one), cost: 3 })
    const body = [
      { policy: 'per-ip', key: ip, cost: 1 },
      { ...request(other), cost: 2 },
      request(ip, '/none'),
    ]
    const options = { headers: { 'Idempotency-Key': 'back' } }
    const first = await api.call<{ limits: object[] }[]>('/refund', body, options)
    expect(first.body.map(({ limits }) => limits)).toMatchObject([
      [{ remaining: 1 }],
      [{ remaining: 2 }],
      [],
    ])
    expect((await api.call('/refund', body, options)).body).toEqual(first.body)
    expect((await api.decide({ ...request(ip), mode: 'peek' })).body.limits[0]!.remaining).toBe(1)
  })

  test('is a slot that only its id gives back', async () => {
    const ip = newIp()
    const { body } = await api.decide(request(ip, '/slow'))
    const peek = async () =>
      (await api.decide({ ...request(ip, '/slow'), mode: 'peek' })).body.limits[0]!.remaining
    await api.call('/refund', request(ip, '/slow'))
    await api.call('/refund', { ...request(ip, '/slow'), slot: 'somebody-elses' })
    expect(await peek()).toBe(1)
    await api.call('/refund', { ...request(ip, '/slow'), slot: body.slot })
    expect(await peek()).toBe(2)
  })

  test('is a slot that goes back though no units do', async () => {
    const ip = newIp()
    const { body } = await api.decide(request(ip, '/slow'))
    const back = await api.call<LimitStatus>('/refund', {
      ...request(ip, '/slow'),
      cost: 0,
      slot: body.slot,
    })
    expect(back.body.limits[0]!.remaining).toBe(2)
  })

  test('at a time that cannot be is refused as such', async () => {
    const { status } = await api.call('/refund', { ...request(newIp()), at: 2 ** 53 - 1 })
    expect(status).toBe(422)
  })
})
