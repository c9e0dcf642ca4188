import { parseList } from 'structured-headers'
import { describe, expect, test } from 'vitest'
import { commandsBetween } from '../../support/commands.ts'
import { newIp, request, useDecideApi } from './decide-api.ts'

const api = useDecideApi()

describe('a decision on a request', () => {
  test('A request is decided as by the gateway, with the same RateLimit fields.', async () => {
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

  test('A request has the same quota through the decision API and through the gateway.', async () => {
    const ip = newIp()
    await api.decide(request(ip, '/priced'))
    const through = await api.fetch('/priced', { ip })
    expect(parseList(through.headers.get('ratelimit')!)[0]![1].get('r')).toBe(1)
    expect((await api.decide(request(ip, '/priced'))).body.limits[0]!.remaining).toBe(0)
  })

  test('A decision takes one HTTP request to Redis, and no more commands than in the gateway.', async () => {
    const before = api.httpRequests()
    const commands = await commandsBetween(api.redis.url, () => api.decide(request(newIp())))
    expect(api.httpRequests() - before).toBe(1)
    const { eval: first = 0, evalsha = 0, ...others } = commands
    expect(first + evalsha).toBe(1)
    expect(others).toEqual({ time: 1, get: 1, set: 1 })
  })

  test('A peek charges nothing.', async () => {
    const ip = newIp()
    for (let time = 0; time < 3; time++) {
      const { body } = await api.decide({ ...request(ip), mode: 'peek' })
      expect(body.limits[0]!.remaining).toBe(2 + 1)
    }
    const costly = await api.decide({ ...request(ip), mode: 'peek', cost: 4 })
    expect([costly.status, costly.body.retryAfterMs]).toEqual([429, null])
  })

  test('The decision differs for a request without a policy, with a shadow policy, on a deny list, and without its key.', async () => {
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

  test('The caller sets the cost of a request, and the headers of the request cannot.', async () => {
    const ip = newIp()
    const free = { headers: { 'x-price': '0', 'Sluice-Token': 'a-api-token-for-tests' } }
    expect((await api.decide(request(ip, '/priced', free))).body.limits[0]).toMatchObject({
      cost: 1,
      remaining: 2,
    })
    expect(
      (await api.decide({ ...request(ip, '/priced', free), cost: 2 })).body.limits[0],
    ).toMatchObject({ cost: 2, remaining: 0 })
  })

  test('A request cannot change its client address by its headers.', async () => {
    const ip = newIp()
    const spoofed = { headers: { 'CF-Connecting-IP': newIp(), 'X-Forwarded-For': newIp() } }
    await api.decide(request(ip))
    expect((await api.decide(request(ip, '/a/b', spoofed))).body.limits[0]!.remaining).toBe(1)
  })

  test('A request gets the plan of its customer.', async () => {
    const { body } = await api.decide(
      request(newIp(), '/planned', { headers: { 'x-customer': 'acme' } }),
    )
    expect(body.limits[0]).toMatchObject({ limit: 5, remaining: 4 })
  })
})

describe('a decision on a policy and a key', () => {
  test('A decision on a key charges the quota that a request with this key charges.', async () => {
    const ip = newIp()
    await api.decide(request(ip))
    const { body } = await api.decide({ policy: 'per-ip', key: ip })
    expect(body.limits).toMatchObject([{ policy: 'per-ip', remaining: 1 }])
  })

  test.each([
    ['by-two', ['203.0.113.9', '/X//y/../z;v=1'], ['203.0.113.9', '/x/z']],
    ['per-ip', '2001:db8::1', '2001:DB8:0:0:ffff::2'],
    ['per-ip', '2001:db8:7::/64', ['2001:db8:7::9']],
    ['by-user', 7, '7'],
    ['by-user', [null], ''],
    ['by-name', 'ann', ' Ａnn '],
    ['per-ip', '64:ff9b::203.0.113.8', '203.0.113.8'],
  ])('In the policy %s the keys %j and %j have one quota.', async (policy, key, other) => {
    expect((await api.decide({ policy, key })).body.limits[0]!.remaining).toBe(2)
    const { body } = await api.decide({ policy, key: other })
    expect(body.limits[0]!.remaining).toBe(1)
  })

  const hex = 'ab'.repeat(32)
  const at = (url: string, more = {}) => ({ request: { url: `https://${url}`, ...more } })
  test.each([
    ['by-host', 'Shop.Example.com.:8443', at('shop.example.com:8443/by-host')],
    ['by-host', 'münchen.example', at('münchen.example/by-host')],
    ['by-host', '[2001:DB8:0::1]', at('[2001:db8::1]/by-host')],
    ['by-path', '/by-path/A%2FB/../x;y?q#f', at('a.example/by-path/x?q')],
    ['by-path', '/by-path/ö 100%', at('a.example/by-path/%C3%B6%20100%25')],
    ['by-colo', 'fra', at('a.example/by-colo', { colo: 'FRA' })],
    ['by-colo', 'AMS', at('a.example/by-colo', { colo: 'ams' })],
    ['by-name', 'Jörg;v=1', at('a.example/named/J%C3%B6rg;v=1')],
    ['by-name', 'a/b', at('a.example/named/a%2Fb')],
    ['by-name', '100%', at('a.example/named/100%25')],
    ['by-name', 'a%2fc', at('a.example/named/a%2Fc')],
    // A key of 64 hexadecimal digits is not taken for a digest.
    ['by-api-key', hex, at('a.example/by-api-key', { headers: { 'x-api-key': hex } })],
  ])(
    'The policy %s has one quota for the key %j and for a request with this key.',
    async (name, key, described) => {
      expect((await api.decide(described)).body.limits[0]!.remaining).toBe(2)
      expect((await api.decide({ policy: name, key })).body.limits[0]!.remaining).toBe(1)
    },
  )

  test('A key may be the digest of an API key.', async () => {
    const described = at('a.example/by-api-key', { headers: { 'x-api-key': 'somebody-s-key' } })
    await api.decide(described)
    const tried = await api.operate<{ key: { value: string }[] }>('by-api-key', 'try', described)
    const key = `sha256:${tried.body.key[0]!.value}`
    expect((await api.decide({ policy: 'by-api-key', key })).body.limits[0]!.remaining).toBe(1)
  })

  test('A decision on a key uses the limit of the given plan.', async () => {
    const { body } = await api.decide({ policy: 'planned', key: 'somebody', plan: 'pro' })
    expect(body.limits[0]).toMatchObject({ limit: 5, remaining: 4 })
  })

  const address =
    'an IP address, or a network that shares a quota (the key of the policy per-ip is ip)'
  test.each([
    [{ policy: 'none', key: 'x' }, 'policy', 'the name of a policy'],
    [{ policy: 'per-ip', key: 'x' }, 'key', address],
    [{ policy: 'per-ip', key: 10 }, 'key', address],
    [{ policy: 'per-ip', key: '010.0.0.1' }, 'key', address],
    [{ policy: 'per-ip', key: '203.0.113.0/24' }, 'key', address],
    [{ policy: 'per-ip', key: '2001:db8::/32' }, 'key', address],
    [
      { policy: 'by-host', key: 'a.example/x' },
      'key',
      'a host (the key of the policy by-host is host)',
    ],
    [{ policy: 'per-ip', key: ['203.0.113.1', 'b'] }, 'key', 'a value for each of ip'],
    [
      { policy: 'by-two', key: ['203.0.113.1', 'b'] },
      'key[1]',
      'a path that begins with / (the key of the policy by-two is ip, path)',
    ],
    [
      { policy: 'per-ip', key: '203.0.113.1', plan: 'pro' },
      'plan',
      'nothing (the policy has no plans)',
    ],
    [
      { policy: 'planned', key: 'a', plan: 'prp' },
      'plan',
      expect.stringMatching(/^one of pro \(leave plan out for the limit of \d+\)$/),
    ],
    [
      { policy: 'shut', key: [null] },
      'key[0]',
      'a value (the policy has no quota for requests without header:x-key)',
    ],
  ])('The body %j is refused, and the error names %s.', async (ask, path, expected) => {
    const { status, body } = await api.call<{ errors: object[] }>('/decide', ask)
    expect([status, body.errors]).toMatchObject([422, [{ path, expected }]])
    const many = await api.call<{ errors: object[] }>('/decide', [
      { policy: 'by-user', key: 'ok' },
      ask,
    ])
    expect([many.status, many.body.errors]).toMatchObject([422, [{ path: `[1].${path}` }]])
  })
})

describe('a batch of decisions', () => {
  test('A batch of 100 requests with three subjects each takes one HTTP request to Redis.', async () => {
    await api.decide(request(newIp()))
    const before = api.httpRequests()
    const { status, body } = await api.decideEach(
      Array.from({ length: 100 }, (_, n) =>
        request(newIp(), '/wide', { headers: { x: `x${n}`, y: `y${n}`, z: `z${n}` } }),
      ),
    )
    expect(api.httpRequests() - before).toBe(1)
    expect([status, body.length]).toEqual([200, 100])
    for (const decision of body) {
      expect(decision.limits.map(({ remaining }) => remaining)).toEqual([2, 2, 2])
      expect(decision.decidedAt).toBeGreaterThan(0)
    }
  })

  test('A batch is decided in order, and one refusal does not refuse the others.', async () => {
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

  test('A batch with an invalid item charges nothing.', async () => {
    const ip = newIp()
    const { status } = await api.decideEach([request(ip), { policy: 'none', key: 'a' }])
    expect(status).toBe(422)
    expect((await api.decide(request(ip))).body.limits[0]!.remaining).toBe(2)
  })
})
