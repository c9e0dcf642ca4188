import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Stack, startStack } from '../../../dev/stack.ts'
import {
  type Ask,
  type ClientOptions,
  createClient,
  describeRequest,
} from '../../../src/client/client.ts'

const TOKEN = 'a-token-of-the-api'

describe('a client of the decision API', () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack({
      config: {
        policies: [
          {
            name: 'per-user',
            limit: 5,
            window: '1h',
            match: { path: '/never' },
            key: 'header:x-user',
          },
          {
            name: 'slots',
            algorithm: 'concurrency',
            limit: 2,
            window: '1m',
            match: { path: '/never' },
            key: 'header:x-user',
          },
          { name: 'login', limit: 2, window: '1h', match: { path: '/login', method: 'POST' } },
        ],
      },
      env: { SLUICE_API_TOKEN: `${TOKEN}, another-token-of-the-api` },
    })
  })
  afterAll(() => stack?.stop())
  const client = (options: Partial<ClientOptions> = {}) =>
    createClient({ url: stack.url, token: TOKEN, deadlineMs: 10_000, onError: 'throw', ...options })
  let users = 0
  const somebody = (more: Partial<Ask> = {}): Ask =>
    ({ policy: 'per-user', key: `user-${++users}`, ...more }) as Ask

  test('The client decides and charges until the limit, then says when to retry.', async () => {
    const api = client()
    const asked = somebody({ cost: 3 })
    expect(await api.decide(asked)).toMatchObject({ allowed: true, limits: [{ remaining: 2 }] })
    const refused = await api.decide(asked)
    expect(refused).toMatchObject({ allowed: false, reason: 'limited', limits: [{ remaining: 2 }] })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
  })

  test('A peek charges nothing.', async () => {
    const asked = somebody()
    for (let i = 0; i < 3; i++) {
      expect((await client().peek(asked)).limits[0]!.remaining).toBe(5)
    }
  })

  test('A list is decided in its order.', async () => {
    const [a, b] = [somebody(), somebody({ cost: 9 })]
    const decisions = await client().decide([a, b, a])
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true])
    expect(decisions[2]!.limits[0]!.remaining).toBe(3)
  })

  test('A request is decided by the policies that apply to it.', async () => {
    const request = new Request('https://www.example.com//LOGIN/', { method: 'POST' })
    const asked = { request: describeRequest(request, '198.51.100.1') }
    const answers = [
      await client().decide(asked),
      await client().decide(asked),
      await client().decide(asked),
    ]
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false])
    expect(answers[0]!.limits.map(({ policy }) => policy)).toEqual(['login'])
  })

  test('A refund gives back a part or all of the charge.', async () => {
    const api = client()
    const asked = somebody({ cost: 4 })
    const decision = await api.decide(asked)
    expect((await api.refund(asked, decision, { cost: 3 }))!.limits[0]!.remaining).toBe(4)
    const whole = somebody({ cost: 4 })
    const standing = await api.refund(whole, await api.decide(whole))
    expect(standing!.limits[0]!.remaining).toBe(5)
  })

  test('A slot is held until it is released.', async () => {
    const api = client()
    const asked = somebody({ policy: 'slots' } as never)
    const first = await api.decide(asked)
    expect(first.slot).toMatch(/./)
    await api.decide(asked)
    expect((await api.decide(asked)).allowed).toBe(false)
    await api.refund(asked, first)
    expect((await api.decide(asked)).allowed).toBe(true)
  })

  test('A repeated call with an idempotency key is charged once.', async () => {
    const api = client()
    const asked = somebody({ cost: 2 })
    const options = { idempotencyKey: `order-${users}` }
    const decisions = [await api.decide(asked, options), await api.decide(asked, options)]
    expect(decisions.map(({ limits }) => limits[0]!.remaining)).toEqual([3, 3])
    expect((await api.peek(asked)).limits[0]!.remaining).toBe(3)
    await expect(api.decide(somebody(), options)).rejects.toMatchObject({ status: 422 })
  })

  test('A wrong token is refused with 401.', async () => {
    const wrong = client({ token: 'a-token-of-nobody' })
    await expect(wrong.decide(somebody())).rejects.toMatchObject({ code: 'refused', status: 401 })
  })

  test('The error names the wrong field of the body.', async () => {
    const error = await client()
      .decide([somebody(), { policy: 'none', key: 'x' }])
      .catch((e) => e)
    expect(error.problem.errors).toMatchObject([{ path: '[1].policy' }])
  })

  test('Lists of any length with keys of any length are decided in their order.', async () => {
    const same = somebody({ cost: 2 })
    const long = Array.from({ length: 150 }, (_, n) => somebody({ key: `${n}${'€'.repeat(2000)}` }))
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

  test('Keys of any length and number keys are decided.', async () => {
    for (const key of ['x'.repeat(5000), 2 ** 70, -0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect((await client().decide({ policy: 'per-user', key })).reason).toBe('within-limit')
    }
  })
})
