/** `limits()`: limits by name and key, in a real Redis. */
import { describe, expect, test, vi } from 'vitest'
import { ConfigError, StoreError } from '../../../src/core/base/errors.ts'
import {
  type LimitDecision,
  type LimitsOptions,
  type LimitTerms,
  limits,
} from '../../../src/limits/limits.ts'
import { useDatabase } from '../../support/database.ts'

const { env } = useDatabase()

let namespaces = 0

/** Limits with counters of their own. */
function fresh<Name extends string>(
  terms: Record<Name, LimitTerms>,
  options: Partial<LimitsOptions> = {},
) {
  namespaces += 1
  return limits(terms, { env, namespace: `door-${namespaces}`, deadline: '5s', ...options })
}

const hour = { limit: 2, window: '1h' } as const

describe('A call', () => {
  test('is admitted up to the limit, for each key.', async () => {
    const quota = fresh({ invites: hour })
    const seen: [boolean, number][] = []
    for (const key of ['ann', 'ann', 'ann', 'ben']) {
      const { allowed, remaining } = await quota.limit('invites', key)
      seen.push([allowed, remaining])
    }
    expect(seen).toEqual([
      [true, 1],
      [true, 0],
      [false, 0],
      [true, 1],
    ])
  })

  test('tells the size of its quota, and when it has room again.', async () => {
    const quota = fresh({ invites: hour })
    expect(await quota.limit('invites', 'ann', { cost: 2 })).toMatchObject({
      ...{ allowed: true, reason: 'within-limit', limit: 2, remaining: 0, retryAfterMs: 0 },
      limits: [{ policy: 'invites', cost: 2, windowMs: 3_600_000 }],
    })
    const refused = await quota.limit('invites', 'ann')
    expect(refused).toMatchObject({ allowed: false, reason: 'limited', limit: 2, remaining: 0 })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    expect(refused.resetAfterMs).toBeGreaterThanOrEqual(refused.retryAfterMs!)
  })

  test('of several limits is charged to all of them, or to none.', async () => {
    const quota = fresh({ user: { limit: 5, window: '1h' }, all: hour })
    const both = [
      ['user', 'ann'],
      ['all', ''],
    ] as const
    const seen = []
    for (const _ of [1, 2, 3]) seen.push((await quota.limit(both)).allowed)
    expect(seen).toEqual([true, true, false])
    expect((await quota.peek('user', 'ann')).remaining).toBe(3)
  })

  test('of several limits has the numbers of the one that binds.', async () => {
    const quota = fresh({ wide: { limit: 9, window: '1h' }, narrow: hour })
    const both = [
      ['wide', 'ann'],
      ['narrow', 'ann'],
    ] as const
    expect(await quota.limit(both)).toMatchObject({ allowed: true, limit: 2, remaining: 1 })
    expect(await quota.limit(both, { cost: 2 })).toMatchObject({ allowed: false, limit: 2 })
  })

  test('has the fields of a response.', async () => {
    const fields = (await fresh({ invites: hour }).limit('invites', 'ann')).fields()
    expect(fields).toEqual({
      'RateLimit-Policy': '"invites";q=2;w=3600',
      RateLimit: expect.stringMatching(/^"invites";r=1;t=\d+$/),
    })
  })

  test('is copied to JSON as its decision, with the numbers.', async () => {
    const decision = await fresh({ invites: hour }).limit('invites', 'ann')
    expect(JSON.parse(JSON.stringify(decision))).toMatchObject({ allowed: true, remaining: 1 })
  })
})

describe('A key', () => {
  test.each([
    ['a text of 5,000 characters', 'x'.repeat(5000), `${'x'.repeat(4999)}y`],
    ['a list', ['a', 'b'], ['a,b']],
    ['an empty text', '', ' '],
    ['a text in another letter case', 'Ann', 'ann'],
  ])('%s has a quota of its own.', async (_, key, other) => {
    const quota = fresh({ invites: { limit: 1, window: '1h' } })
    expect((await quota.limit('invites', key)).allowed).toBe(true)
    expect((await quota.limit('invites', key)).allowed).toBe(false)
    expect((await quota.limit('invites', other)).allowed).toBe(true)
  })

  test('a number is its text.', async () => {
    const quota = fresh({ invites: { limit: 1, window: '1h' } })
    expect((await quota.limit('invites', 7)).allowed).toBe(true)
    expect((await quota.limit('invites', '7')).allowed).toBe(false)
  })
})

describe('A charge', () => {
  const tokens = { algorithm: 'token-bucket', limit: 100, window: '1d', burst: 100 } as const

  test('returns what was not used, when it is settled.', async () => {
    const quota = fresh({ tokens })
    const spend = await quota.limit('tokens', 'ann', { cost: 80 })
    await spend.settle({ cost: 30 })
    expect((await quota.peek('tokens', 'ann')).remaining).toBe(70)
  })

  test('takes what was used beyond it, when it is settled.', async () => {
    const quota = fresh({ tokens })
    const spend = await quota.limit('tokens', 'ann', { cost: 80 })
    await spend.settle({ cost: 95 })
    expect((await quota.peek('tokens', 'ann')).remaining).toBe(5)
  })

  test('of 0 units takes what was used, when it is settled.', async () => {
    const quota = fresh({ tokens })
    const spend = await quota.limit('tokens', 'ann', { cost: 0 })
    await spend.settle({ cost: 30 })
    expect((await quota.peek('tokens', 'ann')).remaining).toBe(70)
  })

  test('is settled once.', async () => {
    const quota = fresh({ tokens })
    const spend = await quota.limit('tokens', 'ann', { cost: 80 })
    for (const cost of [30, 0, 99]) await spend.settle({ cost })
    expect((await quota.peek('tokens', 'ann')).remaining).toBe(70)
  })

  test('of a refused call is nothing to settle.', async () => {
    const quota = fresh({ tokens })
    await quota.limit('tokens', 'ann', { cost: 90 })
    const refused = await quota.limit('tokens', 'ann', { cost: 20 })
    await refused.settle({ cost: 0 })
    expect((await quota.peek('tokens', 'ann')).remaining).toBe(10)
  })

  test('of several limits is settled for all of them.', async () => {
    const quota = fresh({ tokens, all: { limit: 500, window: '1h' } })
    const spend = await quota.limit(
      [
        ['tokens', 'ann'],
        ['all', ''],
      ],
      { cost: 80 },
    )
    await spend.settle({ cost: 10 })
    expect((await quota.peek('tokens', 'ann')).remaining).toBe(90)
    expect((await quota.peek('all', '')).remaining).toBe(490)
  })

  test('is returned by a refund, and all charges by a reset.', async () => {
    const quota = fresh({ tokens })
    const { decidedAt } = await quota.limit('tokens', 'ann', { cost: 60 })
    const { limits: states } = await quota.refund('tokens', 'ann', { cost: 20, decidedAt })
    expect(states[0]!.remaining).toBe(60)
    expect((await quota.reset('tokens', 'ann')).limits[0]!.remaining).toBe(100)
  })

  test('is the default cost of its limit.', async () => {
    const quota = fresh({ tokens: { ...tokens, cost: 40 } })
    expect((await quota.limit('tokens', 'ann')).remaining).toBe(60)
    expect((await quota.limit('tokens', 'ann', { cost: 0 })).remaining).toBe(60)
  })
})

test('A peek charges nothing.', async () => {
  const quota = fresh({ invites: hour })
  for (const _ of [1, 2, 3]) expect((await quota.peek('invites', 'ann')).remaining).toBe(2)
})

describe('A mistake is a TypeError that tells what to write:', () => {
  const quota = () => limits({ invites: hour, api: hour }, { env, namespace: 'door-mistakes' })
  // biome-ignore lint/suspicious/noExplicitAny: callers without types
  const any = () => quota() as any
  test.each([
    [
      'a name',
      () => any().limit('invite', 'ann'),
      'limit: name: expected "invites" or "api", got "invite"',
    ],
    [
      'no key',
      () => any().peek('api'),
      'peek: key: expected a text, a whole number, or a list of 1 to 16 of them, got nothing',
    ],
    ['a key that is an object', () => any().reset('api', {}), 'reset: key: expected a text'],
    ['an empty list as a key', () => any().limit('api', []), 'limit: key: expected a text'],
    [
      'a cost',
      () => quota().limit('api', 'ann', { cost: -1 }),
      'limit: cost: expected a whole number from 0 to 2251799813685248, got -1',
    ],
    [
      'a refund',
      () => quota().refund('api', 'ann', { cost: 0.5 }),
      'refund: cost: expected a whole number',
    ],
    [
      'units in place of options',
      () => any().limit('api', 'ann', 3),
      'limit: options: expected an object such as { cost: 3 }, got 3',
    ],
    [
      'an option of another library',
      () => any().limit([['api', 'ann']], { rate: 3 }),
      'limit: options: expected some of cost, plan, signal, env, waitUntil, decidedAt, slot, got rate',
    ],
    [
      'an option that only calls over HTTP have',
      () => any().limit('api', 'ann', { idempotencyKey: 'order-1' }),
      'limit: options: expected some of cost, plan, signal, env, waitUntil, decidedAt, slot, got idempotencyKey',
    ],
    [
      'units in place of the options of a refund',
      () => any().refund('api', 'ann', 3),
      'refund: options: expected an object such as { cost: 3 }, got 3',
    ],
    ['no limits', () => quota().limit([]), 'limit: limits: expected at least one limit, got none'],
    [
      'a quota twice',
      () =>
        quota().limit([
          ['api', 1],
          ['api', '1'],
        ]),
      'limit: limits: expected each limit and key once (charge more units with cost), got "api" twice with one key',
    ],
  ])('%s.', async (_, call, message) => {
    const error = await call().then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toContain(message)
  })

  test('the used units of a charge.', async () => {
    const spend = await fresh({ invites: hour }).limit('invites', 'ann')
    await expect(spend.settle({ cost: Number.NaN })).rejects.toThrow('settle: cost: expected')
    await expect(spend.settle(1 as never)).rejects.toThrow('settle: options: expected an object')
  })
})

describe('Terms', () => {
  test('that read a request are a ConfigError that names those of a limit.', () => {
    const make = () =>
      limits({ api: { ...hour, match: { path: '/' }, key: 'ip', cost: [] } } as never)
    expect(make).toThrow(ConfigError)
    expect(make).toThrow(
      /api\.match: expected nothing, got {"path":"\/"}\. limits\(\) decides without a request/,
    )
    expect(make).toThrow(/api\.cost: expected a whole number/)
  })

  test('that are invalid are a ConfigError.', () => {
    expect(() => limits({ api: { limit: 0, window: '1h' } })).toThrow(ConfigError)
  })
})

describe('Without the store', () => {
  const away = {
    env: { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9', UPSTASH_REDIS_REST_TOKEN: 't' },
  }

  test.each([
    ['local', [true, true, false]],
    ['allow', [true, true, true]],
    ['deny', [false, false, false]],
  ] as const)('the fallback %s decides, and no call throws.', async (onStoreError, expected) => {
    vi.spyOn(console, 'log').mockImplementation(() => {})
    const quota = fresh({ invites: { ...hour, onStoreError } }, away)
    const seen = []
    for (const _ of expected) {
      const { allowed, reason, fallback, limit } = await quota.limit('invites', 'ann')
      expect([reason, fallback, limit]).toEqual(['store-error', onStoreError, 2])
      seen.push(allowed)
    }
    expect(seen).toEqual(expected)
  })

  test('the numbers are those of the limits that the process counts, and of no other.', async () => {
    vi.spyOn(console, 'log').mockImplementation(() => {})
    const numbersOf = ({ limit, remaining, resetAfterMs, limits }: LimitDecision) => [
      ...[limit, remaining, Math.ceil(resetAfterMs / 3_600_000), limits.length],
    ]
    const fixed = { ...hour, algorithm: 'fixed-window' } as const
    const quota = fresh(
      {
        few: { ...fixed, limit: 2 },
        many: { ...fixed, limit: 9 },
        open: { ...fixed, limit: 1, onStoreError: 'allow' },
        closed: { ...fixed, limit: 1, onStoreError: 'deny' },
        seen: { ...fixed, limit: 1, mode: 'shadow' },
      },
      away,
    )
    const limit = (...names: ('few' | 'many' | 'open' | 'closed' | 'seen')[]) =>
      quota.limit(names.map((name) => [name, 'ann'])).then(numbersOf)
    expect(await limit('many', 'open', 'seen')).toEqual([9, 8, 1, 0])
    expect(await limit('many', 'few')).toEqual([2, 1, 1, 0])
    expect(await limit('many', 'few', 'closed')).toEqual([1, 0, 0, 0])
    expect(await limit('few')).toEqual([2, 0, 1, 0])
    expect(await limit('few')).toEqual([2, 0, 1, 0])
    expect(await limit('open')).toEqual([1, 0, 0, 0])
    expect(numbersOf(await quota.peek('many', 'ann'))).toEqual([9, 7, 1, 0])
  })

  test('a reset and a refund reject.', async () => {
    vi.spyOn(console, 'log').mockImplementation(() => {})
    const quota = fresh({ invites: hour }, away)
    await expect(quota.reset('invites', 'ann')).rejects.toBeInstanceOf(StoreError)
    await expect(quota.refund('invites', 'ann')).rejects.toBeInstanceOf(StoreError)
  })

  test('an environment that names none is a ConfigError with the variable.', async () => {
    const quota = limits({ invites: hour }, { env: {} })
    vi.stubEnv('UPSTASH_REDIS_REST_URL', undefined)
    await expect(quota.limit('invites', 'ann')).rejects.toThrow('UPSTASH_REDIS_REST_URL')
    vi.unstubAllEnvs()
  })
})

test('64 calls at once admit exactly the limit.', async () => {
  const quota = fresh({ invites: { limit: 40, window: '1h' } })
  const all = await Promise.all(Array.from({ length: 64 }, () => quota.limit('invites', 'ann')))
  expect(all.filter(({ allowed }) => allowed)).toHaveLength(40)
})
