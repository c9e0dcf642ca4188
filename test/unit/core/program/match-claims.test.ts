import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { createMatcher } from '../../../support/create-matcher.ts'
import { sign } from '../../../support/issuer.ts'
import { problems, problemsOf, valid } from '../../../support/parse.ts'

const SECRET = 'a secret of at least 32 bytes, or so it says'
const limit = { claim: 'rate', max: 1000, otherwise: 10 }

async function sizeOf(policy: Partial<PolicyOptions>, claims?: object, secret = SECRET) {
  const describeRequest = createMatcher({
    use: [jwt({ secret: 'JWT' })],
    policies: [{ name: 'a', window: '1m', key: 'jwt:sub', limit, ...policy }],
  })
  const token = claims && (await sign(claims, { alg: 'HS256' }, Buffer.from(secret)))
  const headers = token ? { authorization: `Bearer ${token}` } : {}
  const { policies } = await describeRequest('/', { headers }, { env: { JWT: SECRET } })
  const [match] = policies
  const { terms: sized, floor, partitionKey } = match!
  return { limit: sized.limit, burst: sized.burst, tag: sized.tag, floor, partitionKey }
}

describe('a limit from a claim', () => {
  test.each([
    [7, 7],
    [1, 1],
    [1000, 1000],
    [1001, 1000],
    [1e300, 1000],
    ['250', 250],
    ['1e2', 10],
    ['1e+2', 10],
    ['0x64', 10],
    [' 50 ', 10],
    ['+50', 10],
    ['5.0', 10],
    ['00', 10],
    ['9'.repeat(400), 1000],
    [0, 10],
    [-5, 10],
    [2.5, 10],
    ['', 10],
    ['many', 10],
    ['Infinity', 10],
    [true, 10],
    [null, 10],
    [[500], 10],
    [{ rate: 500 }, 10],
    [{ toString: 500 }, 10],
    [undefined, 10],
  ])('The claim %j gives the limit %d.', async (rate, expected) => {
    expect((await sizeOf({}, { sub: 'ann', rate })).limit).toBe(expected)
  })

  test('A token that is not verified, and a request without a token, get otherwise.', async () => {
    const other = 'another secret of at least 32 bytes, too'
    expect((await sizeOf({}, { sub: 'ann', rate: 500 }, other)).limit).toBe(10)
    expect((await sizeOf({})).limit).toBe(10)
  })

  test('The claim changes neither the key nor the tag of the counter.', async () => {
    const [one, other] = await Promise.all(
      [20, 500].map((rate) => sizeOf({}, { sub: 'ann', rate })),
    )
    expect(one!.limit).not.toBe(other!.limit)
    expect([one!.tag, one!.partitionKey]).toEqual([other!.tag, [['jwt:sub', 'ann']]])
    expect(one!.tag).toBe((await sizeOf({ limit: 3 }, { sub: 'ann' })).tag)
  })

  test('The claim takes precedence over the plan, and the plan over otherwise.', async () => {
    const plans = { plan: 'jwt:plan', limits: { pro: 50 } } as const
    expect((await sizeOf(plans, { sub: 'ann', plan: 'pro', rate: 70 })).limit).toBe(70)
    expect((await sizeOf(plans, { sub: 'ann', plan: 'pro', rate: 'x' })).limit).toBe(50)
    expect((await sizeOf(plans, { sub: 'ann', plan: 'none' })).limit).toBe(10)
  })

  test('The burst and the floor follow the claim, unless the policy sets the burst.', async () => {
    const claims = { sub: 'ann', rate: 200 }
    const reserve = [{ share: 0.5 }]
    const bucket = { algorithm: 'token-bucket', reserve } as const
    expect(await sizeOf(bucket, claims)).toMatchObject({ burst: 200, floor: 100 })
    expect(await sizeOf({ ...bucket, burst: 6 }, claims)).toMatchObject({ burst: 6, floor: 3 })
    expect(await sizeOf({ reserve }, claims)).toMatchObject({ floor: 100 })
    expect((await sizeOf({ algorithm: 'gcra' }, claims)).burst).toBe(1)
  })
})

describe('the options of a limit from a claim', () => {
  const verifier = jwt({ secret: 'JWT' })

  test.each([
    [{ claim: 'rate', otherwise: 5 }, 'limit.max: a whole number of at least 1 | nothing'],
    [{ claim: 'rate', max: 5 }, 'limit.otherwise: a whole number of at least 1 | nothing'],
    [{ max: 5, otherwise: 5 }, 'limit.claim: the name of a claim | nothing'],
    [{ ...limit, claim: '' }, 'limit.claim: the name of a claim | ""'],
    [{ ...limit, max: 0 }, 'limit.max: a whole number of at least 1 | 0'],
    [{ ...limit, otherwise: 1001 }, 'limit.otherwise: at most max, 1000 | 1001'],
    [{ ...limit, min: 1 }, 'limit.min: one of the fields claim, max, otherwise | 1'],
    ['10', 'limit: a whole number of at least 1 | "10"'],
  ])('The limit %j is refused.', (wrong, problem) => {
    expect(problemsOf({ limit: wrong })).toContain(problem)
  })

  test('The bounds of a limit apply to max.', () => {
    const log = { algorithm: 'sliding-log', limit: { ...limit, max: 10_001 } }
    expect(problemsOf(log)).toContain(
      'limit.max: at most 10000 with sliding-log (sliding-window allows more) | 10001',
    )
    const long = { window: '365d', limit: { ...limit, max: 10 ** 6 } }
    expect(problemsOf(long)).toContainEqual(
      expect.stringMatching(
        /^limit\.max: at most 95205 with sliding-window and this window .* 1000000$/,
      ),
    )
  })

  test('A claim needs jwt in the configuration.', () => {
    const policies = [{ ...valid, limit }]
    expect(problems({ policies })).toEqual([
      `policies[0].limit: use: [jwt()], with import { jwt } from 'sluice/features' | ${JSON.stringify(limit)}`,
    ])
    expect(problems({ policies, use: [verifier] })).toEqual([])
  })
})
