import { describe, expect, expectTypeOf, test } from 'vitest'
import type { Duration } from '../../../../src/core/base/duration.ts'
import { tagOf } from '../../../../src/core/base/fnv.ts'
import type { ConfigOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { ClaimLimit } from '../../../../src/core/config/schema/policy.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { jwt } from '../../../../src/features/jwt/index.ts'
import { problems, shield, valid } from '../../../support/parse.ts'

test('The types of a configuration accept valid options and reject wrong literals.', () => {
  const key = (context: { user: string }) => context.user
  const written: ConfigOptions<{ user: string }> = {
    policies: [{ ...valid, key: ['ip', key], countOnly: '4xx', plan: { key, table: 'plans' } }],
    shield: { ...shield, key },
  }
  expectTypeOf(written.policies[0]!.limit).toEqualTypeOf<number | ClaimLimit>()
  expectTypeOf(written.deadline).toEqualTypeOf<Duration | undefined>()
  const policies = [
    // @ts-expect-error
    { ...valid, window: '10 minuts' },
    // @ts-expect-error
    { ...valid, key: 'headr:x-plan' },
    // @ts-expect-error
    { ...valid, match: { hots: 'www.example.com' } },
    // @ts-expect-error
    { ...valid, key: (context: { cookies: string }) => context.cookies },
    // @ts-expect-error
    { name: 'a', window: '10s' },
  ] satisfies ConfigOptions<{ user: string }>['policies']
  for (const policy of policies.slice(0, 3))
    expect(problems({ policies: [policy] })).toHaveLength(1)
})

describe('the policy parser', () => {
  test.each([10_000_000, 100_000_000_000, Number.MAX_SAFE_INTEGER])(
    'A fixed window may have a limit of %d, also of a plan or a claim, in any window.',
    (units) => {
      for (const window of ['1s', '31d', '365d', 'day', 'month'] as const) {
        const budget = { ...valid, algorithm: 'fixed-window', limit: units, window } as const
        const plan = { limits: { pro: units }, plan: 'header:x-plan' } as const
        const claim = { claim: 'tokens', max: units, otherwise: 5 }
        const policies = [
          { ...budget, name: 'plan', ...plan },
          { ...budget, name: 'claim', limit: claim },
        ]
        expect(problems({ policies, use: [jwt({ secret: 'JWT' })] })).toEqual([])
      }
    },
  )

  test('The parser fills in every default.', () => {
    expect(parseConfig({ policies: [valid] }, defaultFields)).toEqual({
      origin: undefined,
      clock: 'store',
      api: undefined,
      denialCache: true,
      unconfigured: 'error',
      batching: true,
      namespace: undefined,
      accept: [],
      originTimeoutMs: 60_000,
      deadlineMs: 300,
      allow: [],
      deny: [],
      caseSensitivePaths: false,
      use: [],
      live: undefined,
      apiKeys: {
        from: [
          { source: 'header', name: 'x-api-key' },
          { source: 'bearer', name: '' },
        ],
      },
      headers: ['draft-11'],
      cors: undefined,
      policies: [
        {
          name: 'a',
          tag: expect.stringMatching(/^[0-9a-z]{1,7}$/),
          algorithm: 'sliding-window',
          limit: 5,
          claim: undefined,
          overrides: undefined,
          windowMs: 10_000,
          burst: 5,
          burstIsLimit: true,
          align: 'first-request',
          key: [{ source: 'ip', v4: 32, v6: 64 }],
          onMissingKey: 'share',
          match: {},
          cost: { header: undefined, response: undefined, rules: [], otherwise: 1 },
          reserve: [],
          calendar: undefined,
          plan: undefined,
          countOnly: undefined,
          penalty: undefined,
          lease: undefined,
          mode: 'enforce',
          deadlineMs: 300,
          onStoreError: 'local',
          usesBody: false,
          settles: false,
          localShare: 1,
          accept: [],
        },
      ],
    })
  })

  test('The fields key and match accept one value or a list.', () => {
    const [policy] = parseConfig(
      {
        policies: [
          {
            ...valid,
            key: ['ip', 'header:X-Api-Key', { ip: { v6: 56 } }],
            match: { path: '/a', method: ['GET', 'POST'] },
          },
        ],
      },
      defaultFields,
    ).policies
    expect(policy).toMatchObject({
      key: [
        { source: 'ip', v4: 32, v6: 64 },
        { source: 'header', name: 'x-api-key' },
        { source: 'ip', v4: 32, v6: 56 },
      ],
      match: { path: ['/a'], method: ['GET', 'HEAD', 'POST'] },
    })
  })

  test('The algorithm gcra parses to a token bucket with the same tag and a default burst of 1.', () => {
    const bucketOf = (algorithm: string, burst?: number) =>
      parseConfig({ policies: [{ ...valid, algorithm, burst }] }, defaultFields).policies[0]!
    const token = bucketOf('token-bucket')
    expect(token).toMatchObject({ algorithm: 'token-bucket', burst: 5 })
    expect(bucketOf('gcra')).toEqual({ ...token, burst: 1, burstIsLimit: false })
    expect(bucketOf('gcra', 5)).toEqual({ ...token, burstIsLimit: false })
  })

  test('The tag of a token bucket differs from that of earlier versions, which stored the available tokens.', () => {
    const { tag } = parseConfig(
      { policies: [{ ...valid, algorithm: 'token-bucket' }] },
      defaultFields,
    ).policies[0]!
    expect(tag).not.toBe(tagOf(valid.name, 'token-bucket', 10_000, 'first-request'))
  })

  test('The tag of a policy depends only on its name, algorithm, window and align.', () => {
    const tag = (change: object) =>
      parseConfig({ policies: [{ ...valid, ...change }] }, defaultFields).policies[0]!.tag
    const fixed = { algorithm: 'fixed-window' }
    expect(tag({ limit: 6, cost: 2, mode: 'shadow', key: 'header:a', match: { path: '/x' } })).toBe(
      tag({}),
    )
    const tags = [{}, { name: 'b' }, fixed, { window: '11s' }, { ...fixed, align: 'clock' }].map(
      tag,
    )
    expect(new Set(tags).size).toBe(5)
    expect(tag({ ...fixed, align: 'first-request' })).toBe(tag(fixed))
  })
})

describe('parsed options of a policy', () => {
  const parsed = (change: object, rest: object = {}) =>
    parseConfig({ ...rest, policies: [{ ...valid, ...change }] }, defaultFields).policies[0]!

  test('The option countOnly accepts statuses, classes and ranges.', () => {
    const counted = (countOnly: unknown) => parsed({ countOnly }).countOnly
    expect(counted(401)).toEqual([[401, 401]])
    expect(counted('404-404')).toEqual([[404, 404]])
    expect(counted(['4xx', '5XX', '300-304', '200'])).toEqual([
      [400, 499],
      [500, 599],
      [300, 304],
      [200, 200],
    ])
  })

  test('The deadline defaults to that of the configuration, and slots are not counted in the isolate.', () => {
    expect(parsed({}, { deadline: '1s' }).deadlineMs).toBe(1000)
    expect(parsed({ deadline: '2s' }, { deadline: '1s' }).deadlineMs).toBe(2000)
    expect(parsed({ algorithm: 'concurrency' }).onStoreError).toBe('allow')
  })

  test('The longest ban of a penalty defaults to a day, or to the first ban if that is longer.', () => {
    const ban = (change: object) =>
      parsed({ penalty: { after: 3, within: '1m', ban: '10s', ...change } }).penalty
    const tag = expect.stringMatching(/^[0-9a-z]{1,7}$/)
    expect(ban({})).toEqual({ tag, after: 3, withinMs: 60_000, banMs: 10_000, maxMs: 86_400_000 })
    expect(ban({ ban: '2d' })?.maxMs).toBe(2 * 86_400_000)
    expect(ban({ max: '20s' })?.maxMs).toBe(20_000)
    expect(ban({})?.tag).not.toBe(parsed({}).tag)
  })

  test('The option plan accepts a key part, or a key part with a table.', () => {
    const plans = { limits: { free: 1, pro: 50 } }
    const key = { source: 'header', name: 'x-plan' }
    const common = { key, limits: plans.limits }
    expect(parsed({ ...plans, plan: 'header:X-Plan' }).plan).toEqual({
      ...common,
      table: undefined,
    })
    const tables = { customers: { acme: 'pro' } }
    const plan = { key: 'header:x-plan', table: 'customers' }
    expect(parsed({ ...plans, plan }, { tables }).plan).toEqual({ ...common, table: 'customers' })
    const bucket = { ...plans, plan: 'header:x-plan', algorithm: 'token-bucket' }
    expect(parsed(bucket).burstIsLimit).toBe(true)
    expect(parsed({ ...bucket, burst: 5 }).burstIsLimit).toBe(false)
    expect(parsed({ ...bucket, algorithm: 'gcra' }).burstIsLimit).toBe(false)
  })

  test('A calendar window is in UTC unless the policy has a time zone.', () => {
    const month = { algorithm: 'fixed-window', window: 'month' }
    expect(parsed(month)).toMatchObject({
      calendar: { unit: 'month', timeZone: 'UTC' },
      windowMs: 745 * 3_600_000,
    })
    const berlin = parsed({ ...month, timeZone: 'Europe/Berlin' })
    const tags = [parsed(month), berlin, parsed({ ...month, window: 'day' })].map(({ tag }) => tag)
    expect(new Set(tags).size).toBe(3)
  })
})
