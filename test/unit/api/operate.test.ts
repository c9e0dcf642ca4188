/** The operations on one key of a policy, on the Worker in workerd and a real Redis. */
import { createClient } from 'redis'
import { beforeAll, describe, expect, test } from 'vitest'
import type { LimitState } from '../../../src/core/base/decision.ts'
import { OPERATE, useApi } from '../../support/api-stack.ts'

interface LimitStatus {
  decidedAt: number
  limits: LimitState[]
}
const policy = { limit: 3, window: '1h', algorithm: 'fixed-window' } as const
const algorithms = [
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'token-bucket',
  'gcra',
] as const
const api = useApi({
  policies: [
    { ...policy, name: 'other' },
    ...algorithms.map((algorithm) => ({
      ...policy,
      name: algorithm,
      algorithm,
      ...(algorithm === 'gcra' && { burst: 3 }),
      penalty: { after: 1, within: '1h', ban: '1h', max: '2h' } as const,
    })),
    {
      ...policy,
      name: 'slots',
      algorithm: 'concurrency',
      match: { path: '/slots' },
      penalty: 'manual',
    },
    { ...policy, name: 'manual', penalty: 'manual', match: { path: '/manual' } },
    {
      ...policy,
      name: 'keyed',
      key: 'header:x-key',
      onMissingKey: 'skip',
      match: { path: '/keyed' },
    },
    { ...policy, name: 'users', key: 'path:id', match: { path: '/users/:id/*' } },
    {
      ...policy,
      name: 'conditions',
      match: {
        path: '/conditions/*',
        method: 'get',
        header: { 'X-Plan': ['free', 'Trial*'], 'x-debug': true },
        query: { q: 'x' },
        botScore: { below: 30 },
        not: [{ header: { 'x-test': '1' } }, { country: 'de' }],
      },
    },
  ],
  allow: { name: 'friends', ip: '192.0.2.77' },
  deny: { name: 'abuse', ip: '192.0.2.66' },
})
let redis: ReturnType<typeof createClient>
beforeAll(async () => {
  redis = createClient({ url: api.redis.url })
  await redis.connect()
  return () => redis.destroy()
})

let clients = 0
const newIp = () => `198.51.100.${++clients}`
const everything = async () => {
  const keys = (await redis.keys('*')).sort()
  return Object.fromEntries(
    await Promise.all(
      keys.map(
        async (key): Promise<[string, unknown]> => [
          key,
          (await redis.type(key)) === 'string'
            ? await redis.get(key)
            : await redis.zRangeWithScores(key, 0, -1),
        ],
      ),
    ),
  )
}
const request = (ip: string, path = '/') => ({ request: { url: `https://a.example${path}`, ip } })
const operate = (name: string, operation: string, body: unknown) =>
  api.operate<LimitStatus>(name, operation, body)

describe.each(algorithms)('operations on a key of a %s', (name) => {
  test(`A peek at a key of a ${name} changes nothing.`, async () => {
    const ip = newIp()
    await api.decide({ policy: name, key: ip, cost: 2 })
    const before = await everything()
    const { status, body } = await operate(name, 'peek', { key: ip })
    expect([status, body.limits]).toMatchObject([200, [{ policy: name, remaining: 1, limit: 3 }]])
    expect(body.decidedAt).toBeGreaterThan(0)
    expect(await everything()).toEqual(before)
  })

  test(`A reset of a key of a ${name} changes no other key and no other policy.`, async () => {
    const [ip, neighbour] = [newIp(), newIp()]
    await api.decide(request(ip))
    await api.decide(request(neighbour))
    const before = await everything()
    const { body } = await operate(name, 'reset', { key: ip })
    expect(body.limits).toMatchObject([{ policy: name, remaining: 3, resetAfterMs: 0 }])
    const after = await everything()
    const changed = Object.keys(before).filter(
      (key) =>
        before[key] !== after[key] && JSON.stringify(before[key]) !== JSON.stringify(after[key]),
    )
    expect(changed).toHaveLength(1)
    expect((await operate('other', 'peek', { key: ip })).body.limits[0]!.remaining).toBe(2)
    expect((await operate(name, 'peek', { key: neighbour })).body.limits[0]!.remaining).toBe(2)
  })

  test(`A key of a ${name} is banned for the given time and can be unbanned.`, async () => {
    const ip = newIp()
    const { status, body } = await operate(name, 'ban', { key: ip, for: '30m' })
    expect([status, body.limits]).toMatchObject([
      200,
      [{ policy: name, allowed: false, bannedForMs: 1_800_000 }],
    ])
    const banned = await api.decide(request(ip))
    expect([banned.status, banned.body.reason]).toEqual([429, 'banned'])
    expect((await api.fetch('/', { ip })).status).toBe(429)
    expect((await operate(name, 'unban', { key: ip })).body.limits[0]).toMatchObject({
      allowed: true,
      remaining: 3,
    })
    expect((await api.decide(request(ip))).body.allowed).toBe(true)
  })

  test(`A reset ends a ban of a ${name} that refusals started.`, async () => {
    const ip = newIp()
    await api.decide({ policy: name, key: ip, cost: 3 })
    expect((await api.decide({ policy: name, key: ip })).body.reason).toBe('banned')
    await operate(name, 'reset', { key: ip })
    expect((await api.decide({ policy: name, key: ip })).body.limits[0]).toMatchObject({
      allowed: true,
      remaining: 2,
    })
  })

  test(`A request can select the key of a ${name}.`, async () => {
    const ip = newIp()
    await api.decide({ policy: name, key: ip, cost: 2 })
    expect((await operate(name, 'peek', request(ip))).body.limits[0]!.remaining).toBe(1)
  })
})

test('An operation on a request whose path has several readings applies to all of its quotas.', async () => {
  const peek = async (key: string) =>
    (await operate('users', 'peek', { key })).body.limits.map(({ remaining }) => remaining)
  const both = request(newIp(), '/users/8/..%2Fa1%2Fx')
  const { body } = await api.decide(both)
  expect(body.limits.filter(({ policy }) => policy === 'users')).toMatchObject([{ remaining: 2 }])
  await api.decide(request(newIp(), '/users/8/x'))
  expect([await peek('8'), await peek('a1')]).toEqual([[1], [2]])
  expect((await operate('users', 'peek', both)).body.limits).toMatchObject([{ remaining: 1 }])
  const trial = await api.operate('users', 'try', both)
  expect(trial.body).toMatchObject({
    key: [{ part: 'path:id', value: 'a1' }],
    otherKeys: [[{ part: 'path:id', value: '8' }]],
  })
  await api.call('/refund', both)
  expect([await peek('8'), await peek('a1')]).toEqual([[2], [3]])
  await api.decide(both)
  expect((await operate('users', 'reset', both)).body.limits).toMatchObject([{ remaining: 3 }])
  expect([await peek('8'), await peek('a1')]).toEqual([[3], [3]])
})

test('A peek shows the slots in use, a reset releases all of them, and a ban refuses new ones.', async () => {
  const ip = newIp()
  await api.decide(request(ip, '/slots'))
  await api.decide(request(ip, '/slots'))
  expect((await operate('slots', 'peek', { key: ip })).body.limits[0]!.remaining).toBe(1)
  expect((await operate('slots', 'reset', { key: ip })).body.limits[0]!.remaining).toBe(3)
  await operate('slots', 'ban', { key: ip, for: 60_000 })
  expect((await api.decide(request(ip, '/slots'))).body.reason).toBe('banned')
})

test('A policy with penalty "manual" bans a key only by an operation.', async () => {
  const ip = newIp()
  for (let time = 0; time < 20; time++) {
    expect((await api.decide({ policy: 'manual', key: ip })).body.reason).not.toBe('banned')
  }
  await operate('manual', 'ban', { key: ip, for: '365d' })
  const { body } = await api.decide({ policy: 'manual', key: ip })
  expect([body.reason, body.limits[0]!.bannedForMs! > 364 * 86_400_000]).toEqual(['banned', true])
})

test('A ban is refused if it is too long, or if the policy has no penalty.', async () => {
  const long = await api.operate<{ errors: object[] }>('gcra', 'ban', { key: newIp(), for: '3h' })
  expect([long.status, long.body.errors]).toMatchObject([422, [{ path: 'for' }]])
  for (const operation of ['ban', 'unban']) {
    const body = { key: newIp(), ...(operation === 'ban' && { for: '1m' }) }
    expect((await api.operate('other', operation, body)).status).toBe(409)
  }
})

test.each([
  ['reset', { key: '*' }],
  ['reset', { key: ['203.0.113.*'] }],
  ['reset', {}],
  ['reset', { key: [] }],
  ['peek', { key: '203.0.113.1', mode: 'take' }],
  ['ban', { key: '203.0.113.1' }],
  ['ban', { key: '203.0.113.1', for: 0 }],
  ['ban', { key: '203.0.113.1', for: 'soon' }],
])('The operation %s with the body %j is refused and changes nothing.', async (operation, body) => {
  const before = await everything()
  expect((await api.operate('other', operation, body)).status).toBe(422)
  expect(await everything()).toEqual(before)
})

test('A key that looks like a pattern matches only itself.', async () => {
  for (const key of ['*', 'a', '[ab]', 'a}']) await api.decide({ policy: 'keyed', key })
  await operate('keyed', 'reset', { key: '*' })
  const remaining = async (key: string) =>
    (await operate('keyed', 'peek', { key })).body.limits[0]!.remaining
  expect(await Promise.all(['*', 'a', '[ab]', 'a}'].map(remaining))).toEqual([3, 2, 2, 2])
})

test('An operation on a request is refused if the policy does not apply to the request.', async () => {
  const { status, body } = await api.operate('slots', 'peek', request(newIp(), '/else'))
  expect([status, body]).toMatchObject([409, { unmet: 'match', field: 'path' }])
})

describe('the operation try', () => {
  const trial = async (name: string, body: object) => (await api.operate(name, 'try', body)).body

  test('A trial reports how the policy applies to a request, and charges nothing.', async () => {
    const before = await everything()
    expect(await trial('gcra', request('203.0.113.200'))).toEqual({
      policy: 'gcra',
      met: true,
      mode: 'enforce',
      key: [{ part: 'ip', value: '203.0.113.200' }],
      limit: 3,
      windowMs: 3_600_000,
      cost: 1,
    })
    expect(await everything()).toEqual(before)
  })

  test.each([
    ['slots', '/', '203.0.113.1', { unmet: 'match', field: 'path' }],
    ['keyed', '/keyed', '203.0.113.1', { unmet: 'key', missing: 'header:x-key' }],
    ['other', '/', '192.0.2.77', { unmet: 'allow', entry: 'friends' }],
    ['other', '/', '192.0.2.66', { unmet: 'deny', denied: { by: 'abuse' } }],
  ])(
    'A trial reports why the policy %s does not apply to %s of %s.',
    async (name, path, ip, expected) => {
      expect(await trial(name, request(ip, path))).toEqual({
        policy: name,
        met: false,
        ...expected,
      })
    },
  )
})

test('The list of policies reports whether the store or a fallback decides.', async () => {
  const list = () =>
    api.call<{ policies: object[]; store: object }>('/policies', undefined, { token: OPERATE })
  const { status, body } = await list()
  expect(status).toBe(200)
  expect(body.store).toEqual({ status: 'ok', roundTripMs: expect.any(Number) })
  expect(body.policies).toHaveLength(11)
  expect(body.policies[0]).toEqual({
    name: 'other',
    algorithm: 'fixed-window',
    limit: 3,
    windowMs: 3_600_000,
    burst: 3,
    mode: 'enforce',
    key: ['ip'],
    onStoreError: 'local',
    bans: false,
    decidedBy: 'store',
  })
  expect(body.policies.slice(-2)).toEqual([
    expect.objectContaining({ name: 'users', match: { path: ['/users/:id/*'] } }),
    expect.objectContaining({
      name: 'conditions',
      match: {
        path: ['/conditions/*'],
        method: ['GET', 'HEAD'],
        header: { 'x-plan': ['free', 'trial*'], 'x-debug': true },
        query: { q: ['x'] },
        botScore: { below: 30 },
        not: [{ header: { 'x-test': ['1'] } }, { country: ['DE'] }],
      },
    }),
  ])
  expect(body.policies).toContainEqual(
    expect.objectContaining({ name: 'gcra', algorithm: 'token-bucket', burst: 3 }),
  )
})
