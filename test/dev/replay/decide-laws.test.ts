import fc from 'fast-check'
import { afterAll, beforeAll, expect } from 'vitest'
import { openPrivateRedis, type PrivateRedis } from '../../../dev/replay/decide/private-redis.ts'
import type { LogLine } from '../../../dev/replay/line.ts'
import type { ConfigOptions, PolicyOptions } from '../../../src/config/options.ts'
import { property } from '../../support/law.ts'
import { NOON, replay } from '../../support/replay.ts'

let redis: PrivateRedis
beforeAll(async () => {
  redis = await openPrivateRedis()
})
afterAll(() => redis.stop())

const key = fc.constantFrom<PolicyOptions['key']>(
  'ip',
  { ip: { v4: 24, v6: 48 } },
  'global',
  'path',
  'host',
  'header:x-user',
  ['ip', 'header:x-user'],
  'query:q',
)

const counting: fc.Arbitrary<Partial<PolicyOptions>> = fc.oneof(
  fc.record({
    algorithm: fc.constantFrom('sliding-window', 'sliding-log', 'token-bucket', 'gcra'),
    window: fc.constantFrom('1s', '3s', '10s', '1m'),
  }),
  fc.record({
    algorithm: fc.constant('token-bucket'),
    window: fc.constant('2s'),
    burst: fc.integer({ min: 1, max: 4 }),
  }),
  fc.record({
    algorithm: fc.constant('fixed-window'),
    window: fc.constantFrom('1s', '3s', '10s'),
    align: fc.constantFrom('first-request', 'clock'),
  }),
  fc.record({
    algorithm: fc.constant('fixed-window'),
    window: fc.constantFrom('day', 'week', 'month'),
    timeZone: fc.constantFrom('UTC', 'Etc/GMT-12', 'Asia/Kolkata'),
  }),
) as never

/** Fields of which a policy has some. */
const others = fc.record(
  {
    match: fc.constantFrom<PolicyOptions['match']>(
      { path: '/a/*' },
      { path: ['/b', '/a/:id'] },
      { method: 'POST' },
      { not: { path: '/a' } },
      { host: '*.example.com' },
      { ip: '10.0.0.0/8' },
      { header: { 'x-user': 'a*' } },
      { country: ['DE', 'XX'] },
    ),
    mode: fc.constantFrom('enforce', 'shadow'),
    cost: fc.constantFrom<PolicyOptions['cost']>(0, 2, 9, [
      { method: 'POST', cost: 3 },
      { path: '/a', cost: 0 },
    ]),
    onMissingKey: fc.constantFrom<PolicyOptions['onMissingKey']>('share', 'skip', 'refuse', {
      key: 'ip',
    }),
    countOnly: fc.constantFrom<PolicyOptions['countOnly']>(401, '4xx', ['2xx', 503]),
  },
  { requiredKeys: [] },
)

const planned = fc.constantFrom<Partial<PolicyOptions>>(
  {},
  {},
  { plan: 'header:x-plan', limits: { pro: 6, free: 1 } },
)

/** @param penalty if a policy may have one, which needs Redis */
const policies = (penalty: boolean) =>
  fc.array(
    fc
      .tuple(counting, others, planned, key, fc.integer({ min: 1, max: 4 }), fc.boolean())
      .map(([count, other, plan, key, limit, bans]) => {
        const { countOnly, ...rest } = other
        // The memory leaves this to Redis.
        const isPlannedBucket = plan.plan && /bucket|gcra/.test(`${count.algorithm}`)
        return {
          ...count,
          ...rest,
          ...plan,
          ...(countOnly !== undefined && (penalty || !isPlannedBucket) && { countOnly }),
          ...(penalty && bans && { penalty: { after: 2, within: '5s', ban: '3s', max: '10s' } }),
          key,
          limit,
        }
      }),
    { minLength: 1, maxLength: 4 },
  )

const configs = (penalty: boolean): fc.Arbitrary<ConfigOptions> =>
  fc.record({
    policies: policies(penalty).map((all) =>
      all.map((policy, index) => ({ ...policy, name: `p${index}` }) as PolicyOptions),
    ),
    deny: fc.constantFrom([], [], [{ path: '/denied' }, { ip: '10.9.0.0/16' }]),
    allow: fc.constantFrom<ConfigOptions['allow']>(
      [],
      [],
      { ip: '10.1.0.0/16' },
      {
        path: '/a/*',
        policies: 'p0',
      },
    ),
  })

const lines = fc
  .array(
    fc.record({
      waitMs: fc.oneof(
        { weight: 3, arbitrary: fc.constant(0) },
        { weight: 5, arbitrary: fc.integer({ min: 0, max: 700 }) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: 15_000 }) },
      ),
      line: fc.record(
        {
          ip: fc.constantFrom(
            '10.0.0.1',
            '10.0.0.2',
            '10.1.0.1',
            '10.9.0.1',
            '2001:db8::1',
            '2001:db8::2',
            'x',
          ),
          target: fc.constantFrom(
            '/',
            '/a',
            '/A/',
            '/a/1?q=1',
            '/a/2?q=1&q=2',
            '/b',
            '/a%2F..%2Fb',
            '/a/..;/b',
            '/denied',
          ),
          method: fc.constantFrom('GET', 'GET', 'POST', 'HEAD'),
          host: fc.constantFrom('x.example.com', 'Y.example.com.', 'example.com'),
          status: fc.constantFrom(200, 200, 401, 404, 503),
          country: fc.constantFrom('DE', 'FR'),
          headers: fc.record(
            {
              'x-user': fc.constantFrom('a', 'ab', 'b'),
              'x-plan': fc.constantFrom('pro', 'free', '?'),
            },
            { requiredKeys: [] },
          ),
        },
        { requiredKeys: ['target', 'method'] },
      ),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .chain((steps) =>
    fc.integer({ min: 0, max: 30_000 }).map((before) => {
      let time = NOON + 12 * 3_600_000 - before // before a midnight of UTC
      return steps.map(({ waitMs, line }): LogLine => {
        time += waitMs
        return { time, ...line }
      })
    }),
  )

property(
  'The memory and Redis give the same verdict to each line.',
  fc.tuple(configs(false), lines),
  async ([config, lines]) => {
    expect(await replay(config, lines)).toEqual(await replay(config, lines, { redis }))
  },
)

const inSeconds = lines.map((lines) =>
  lines.map((line) => ({ ...line, time: line.time - (line.time % 1000) })),
)

property(
  'The memory and Redis give the same verdicts to each line of a log with whole seconds.',
  fc.tuple(configs(false), inSeconds),
  async ([config, lines]) => {
    const options = { wholeSeconds: true, chunk: 7 }
    expect(await replay(config, lines, options)).toEqual(
      await replay(config, lines, { ...options, redis }),
    )
  },
)

property(
  'Redis gives the same verdicts whether it gets one line at a time or all at once.',
  fc.tuple(configs(true), lines),
  async ([config, lines]) => {
    expect(await replay(config, lines, { redis, chunk: 1 })).toEqual(
      await replay(config, lines, { redis }),
    )
  },
)

property(
  'A replay with one policy per address equals a replay that also reads the path.',
  fc.tuple(fc.integer({ min: 1, max: 4 }), lines),
  async ([limit, lines]) => {
    const policy = { name: 'p0', limit, window: '3s' } as const
    const byPath = { ...policy, match: { path: '/*' } }
    expect(await replay({ policies: [policy] }, lines)).toEqual(
      await replay({ policies: [byPath] }, lines),
    )
  },
)
