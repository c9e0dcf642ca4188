import { describe, expect, test } from 'vitest'
import {
  type Ask,
  type ClientOptions,
  createClient,
  describeRequest,
} from '../../../src/client/client.ts'
import { API_TOKEN, API_URL, useApi } from '../../support/api-stack.ts'

describe('a client of the decision API', () => {
  const user = { window: '1h', match: { path: '/never' }, key: 'header:x-user' } as const
  const local = useApi(
    {
      policies: [
        { ...user, name: 'per-user', limit: 5 },
        { ...user, name: 'slots', algorithm: 'concurrency', limit: 2, window: '1m' },
        { name: 'login', limit: 2, window: '1h', match: { path: '/login', method: 'POST' } },
      ],
    },
    { SLUICE_API_TOKEN: `${API_TOKEN}, another-token-of-the-api` },
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
  const newAsk = (more: Partial<Ask> = {}): Ask =>
    ({ policy: 'per-user', key: `user-${++users}`, ...more }) as Ask

  test('The client decides and charges until the limit, then says when to retry.', async () => {
    const api = client()
    const ask = newAsk({ cost: 3 })
    expect(await api.decide(ask)).toMatchObject({ allowed: true, limits: [{ remaining: 2 }] })
    const refused = await api.decide(ask)
    expect(refused).toMatchObject({ allowed: false, reason: 'limited', limits: [{ remaining: 2 }] })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
  })

  test('A peek charges nothing.', async () => {
    const ask = newAsk()
    for (let i = 0; i < 3; i++) {
      expect((await client().peek(ask)).limits[0]!.remaining).toBe(5)
    }
  })

  test('A list is decided in its order.', async () => {
    const [a, b] = [newAsk(), newAsk({ cost: 9 })]
    const decisions = await client().decide([a, b, a])
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true])
    expect(decisions[2]!.limits[0]!.remaining).toBe(3)
  })

  test('A request is decided by the policies that apply to it.', async () => {
    const request = new Request('https://www.example.com//LOGIN/', { method: 'POST' })
    const ask = { request: describeRequest(request, '198.51.100.1') }
    const answers = [
      await client().decide(ask),
      await client().decide(ask),
      await client().decide(ask),
    ]
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false])
    expect(answers[0]!.limits.map(({ policy }) => policy)).toEqual(['login'])
  })

  test('A refund returns some or all of the charge.', async () => {
    const api = client()
    const ask = newAsk({ cost: 4 })
    const decision = await api.decide(ask)
    expect((await api.refund(ask, decision, { cost: 3 }))!.limits[0]!.remaining).toBe(4)
    const whole = newAsk({ cost: 4 })
    const status = await api.refund(whole, await api.decide(whole))
    expect(status!.limits[0]!.remaining).toBe(5)
  })

  test('A slot is held until it is released.', async () => {
    const api = client()
    const ask = newAsk({ policy: 'slots' } as never)
    const first = await api.decide(ask)
    expect(first.slot).toMatch(/./)
    await api.decide(ask)
    expect((await api.decide(ask)).allowed).toBe(false)
    await api.refund(ask, first)
    expect((await api.decide(ask)).allowed).toBe(true)
  })

  test('A repeated call with an idempotency key is charged once.', async () => {
    const api = client()
    const ask = newAsk({ cost: 2 })
    const options = { idempotencyKey: `order-${users}` }
    const decisions = [await api.decide(ask, options), await api.decide(ask, options)]
    expect(decisions.map(({ limits }) => limits[0]!.remaining)).toEqual([3, 3])
    expect((await api.peek(ask)).limits[0]!.remaining).toBe(3)
    await expect(api.decide(newAsk(), options)).rejects.toMatchObject({ status: 422 })
  })

  test('A wrong token is refused with 401.', async () => {
    const wrong = client({ token: 'a-token-of-nobody' })
    await expect(wrong.decide(newAsk())).rejects.toMatchObject({ code: 'refused', status: 401 })
  })

  test('The error names the wrong field of the body.', async () => {
    const error = await client()
      .decide([newAsk(), { policy: 'none', key: 'x' }])
      .catch((e) => e)
    expect(error.problem.errors).toMatchObject([{ path: '[1].policy' }])
  })

  test('Lists of any length with keys of any length are decided in their order.', async () => {
    const same = newAsk({ cost: 2 })
    const long = Array.from({ length: 150 }, (_, n) => newAsk({ key: `${n}${'€'.repeat(2000)}` }))
    const asks = [same, ...long, same, same]
    const options = { idempotencyKey: 'a-long-list' }
    const decisions = await client().decide(asks, options)
    expect(decisions).toHaveLength(asks.length)
    expect(decisions.map(({ reason }) => reason)).toEqual([
      ...Array(152).fill('within-limit'),
      'limited',
    ])
    expect(await client().decide(asks, options)).toEqual(decisions)
  })

  test('A list of 101 asks is decided in two calls.', async () => {
    const asks = Array.from({ length: 101 }, () => newAsk())
    const decisions = await client()
      .decide(asks)
      .catch((error) => [error])
    expect(decisions).toHaveLength(101)
  })

  test('Keys of any length and number keys are decided.', async () => {
    for (const key of ['x'.repeat(5000), 2 ** 70, -0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect((await client().decide({ policy: 'per-user', key })).reason).toBe('within-limit')
    }
  })
})
