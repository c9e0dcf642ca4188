import { describe, expect, test } from 'vitest'
import { type ClientOptions, createClient, describeRequest } from '../../../src/client/client.ts'
import { API_TOKEN, API_URL, OPERATE, useApi } from '../../support/api-stack.ts'

describe('a client of the decision API', () => {
  const user = { window: '1h', match: { path: '/never' }, key: 'header:x-user' } as const
  const local = useApi(
    {
      policies: [
        { ...user, name: 'per-user', limit: 5 },
        { ...user, name: 'everyone', limit: 3, key: 'global' },
        { ...user, name: 'slots', algorithm: 'concurrency', limit: 2, window: '1m' },
        { name: 'login', limit: 2, window: '1h', match: { path: '/login', method: 'POST' } },
      ],
    },
    { SLUICE_API_TOKEN: `${API_TOKEN}, another-token-of-the-api, ${OPERATE}` },
  )
  const client = (options: Partial<ClientOptions> = {}) =>
    createClient({
      url: API_URL,
      token: API_TOKEN,
      deadlineMs: 25_000, // a slow machine must cause no timeout
      onError: 'throw',
      fetch: async (url, init) => local.fetch(url, init as object),
      ...options,
    })
  let users = 0
  const newUser = () => `user-${++users}`

  test('The client decides and charges until the limit, then says when to retry.', async () => {
    const [quota, key] = [client(), newUser()]
    const first = await quota.limit('per-user', key, { cost: 3 })
    expect(first).toMatchObject({ allowed: true, limit: 5, remaining: 2, limits: [{ cost: 3 }] })
    const refused = await quota.limit('per-user', key, { cost: 3 })
    expect(refused).toMatchObject({ allowed: false, reason: 'limited', remaining: 2 })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    expect(refused.resetAfterMs).toBeGreaterThanOrEqual(refused.retryAfterMs!)
  })

  test('A decision has the fields of a response.', async () => {
    const fields = (await client().limit('per-user', newUser())).fields()
    expect(fields).toEqual({
      'RateLimit-Policy': '"per-user";q=5;w=3600',
      RateLimit: expect.stringMatching(/^"per-user";r=4;t=\d+$/),
    })
  })

  test('A peek charges nothing.', async () => {
    const key = newUser()
    for (let i = 0; i < 3; i++) {
      expect((await client().peek('per-user', key)).remaining).toBe(5)
    }
  })

  test('Several limits are all charged, or none.', async () => {
    const [quota, key] = [client(), newUser()]
    const both = [
      ['per-user', key],
      ['everyone', 'global'],
    ] as const
    expect(await quota.limit(both, { cost: 2 })).toMatchObject({ allowed: true, remaining: 1 })
    expect(await quota.limit(both, { cost: 2 })).toMatchObject({ allowed: false, limit: 3 })
    expect((await quota.peek('per-user', key)).remaining).toBe(3)
  })

  test('A request is decided by the policies that apply to it.', async () => {
    const request = new Request('https://www.example.com//LOGIN/', { method: 'POST' })
    const described = describeRequest(request, '198.51.100.1')
    const answers = []
    for (const mode of ['peek', 'take', 'take', 'take'] as const)
      answers.push(await client().decide(described, { mode }))
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
    expect(answers[0]!.limits.map(({ policy }) => policy)).toEqual(['login'])
    await answers[1]!.settle({ cost: 0 })
    expect((await client().decide(described)).allowed).toBe(true)
  })

  test.each([
    [4, 1, 4],
    [1, 4, 1],
    [0, 2, 3],
    [3, undefined, 2],
  ])('A charge of %i that has used %s leaves %i units.', async (cost, used, left) => {
    const [quota, key] = [client(), newUser()]
    const charge = await quota.limit('per-user', key, { cost })
    for (const again of [used, 5]) await charge.settle(again === undefined ? {} : { cost: again })
    expect((await quota.peek('per-user', key)).remaining).toBe(used === undefined ? 0 : left)
  })

  test('A charge of several limits is settled for each of them.', async () => {
    const [quota, ann, ben] = [client(), newUser(), newUser()]
    const charge = await quota.limit(
      [
        ['per-user', [ann]],
        ['per-user', ben],
      ],
      { cost: 5 },
    )
    await charge.settle({ cost: 2 })
    for (const key of [ann, ben]) expect((await quota.peek('per-user', key)).remaining).toBe(3)
  })

  test('A refund returns units, and a reset with a token for operators all of them.', async () => {
    const [quota, key] = [client(), newUser()]
    const { decidedAt } = await quota.limit('per-user', key, { cost: 4 })
    const refunded = await quota.refund('per-user', key, { cost: 3, decidedAt })
    expect(refunded.limits[0]!.remaining).toBe(4)
    await expect(quota.reset('per-user', key)).rejects.toMatchObject({ status: 403 })
    const status = await client({ token: OPERATE }).reset('per-user', key)
    expect(status.limits[0]!.remaining).toBe(5)
  })

  test('A slot is held until it is settled.', async () => {
    const [quota, key] = [client(), newUser()]
    const first = await quota.limit('slots', key)
    expect(first.slot).toMatch(/./)
    await quota.limit('slots', key)
    expect((await quota.limit('slots', key)).allowed).toBe(false)
    await first.settle()
    expect((await quota.limit('slots', key)).allowed).toBe(true)
  })

  test('A repeated call with an idempotency key is charged once.', async () => {
    const [quota, key] = [client(), newUser()]
    const options = { cost: 2, idempotencyKey: `order-${users}` }
    const decisions = [
      await quota.limit('per-user', key, options),
      await quota.limit('per-user', key, options),
    ]
    expect(decisions.map(({ remaining }) => remaining)).toEqual([3, 3])
    expect((await quota.peek('per-user', key)).remaining).toBe(3)
    const other = quota.limit('per-user', newUser(), options)
    await expect(other).rejects.toMatchObject({ name: 'ApiError', status: 422 })
  })

  test('A wrong token is refused with 401.', async () => {
    const wrong = client({ token: 'a-token-of-nobody' })
    const call = wrong.limit('per-user', newUser())
    await expect(call).rejects.toMatchObject({ code: 'refused', status: 401 })
  })

  test.each<[string, (quota: ReturnType<typeof client>) => Promise<unknown>, string]>([
    [
      'a name',
      (quota) => quota.limit('none', 'x'),
      'limit: policy: expected the name of a policy, got "none"',
    ],
    [
      'a name in a list',
      (quota) => quota.peek([['none', 'x']]),
      'peek: policy: expected the name of a policy, got "none"',
    ],
    [
      'no key',
      (quota) => quota.limit('login', undefined as never),
      'limit: key: expected a text, a whole number, or a list of 1 to 16 of them, got nothing',
    ],
    [
      'a key that the policy cannot count',
      (quota) => quota.limit('login', 'ann'),
      'limit: key: expected an IP address',
    ],
    [
      'a plan',
      (quota) => quota.limit('login', '192.0.2.1', { plan: 'gold' }),
      'limit: plan: expected nothing (the policy has no plans)',
    ],
    [
      'a quota twice',
      (quota) =>
        quota.limit([
          ['per-user', 'ann'],
          ['per-user', 'Ann'],
        ]),
      'limit: limits: expected each limit and key once (charge more units with cost)',
    ],
    ['no limits', (quota) => quota.limit([]), 'limit: limits: expected 1 to 100 limits'],
    [
      'a refund',
      (quota) => quota.refund('login', 'ann', { cost: 1 }),
      'refund: key: expected an IP address',
    ],
  ])('A mistake is a TypeError, whatever onError is: %s.', async (_, call, message) => {
    const error = await call(client({ onError: 'allow' })).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toContain(message)
  })

  test('Values of any length are decided; those with the same first 1024 characters share a quota.', async () => {
    const key = `${newUser()}${'€'.repeat(5000)}`
    expect((await client().limit('per-user', key)).reason).toBe('within-limit')
    expect((await client().limit('per-user', `${key}x`)).remaining).toBe(3)
  })
})
