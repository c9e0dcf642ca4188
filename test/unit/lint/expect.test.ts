/** Expectations of the configuration: what policies must hold for every request. */

import { describe, expect, test } from 'vitest'
import { Calendar } from '../../../src/core/base/calendar.ts'
import type {
  ConfigOptions,
  ExpectOptions,
  PolicyOptions,
} from '../../../src/core/config/options.ts'

import { parseConfig } from '../../../src/core/config/parse.ts'
import { jwt as createJwt } from '../../../src/features/jwt/index.ts'
import { checkExpectations } from '../../../src/lint/expect/expectations.ts'
import { mostUnits } from '../../../src/lint/expect/units.ts'
import { lint } from '../../../src/lint/lint.ts'
import { distinct } from '../../support/features.ts'
import { found, one, several, testFindings } from '../../support/lint.ts'

const login: Partial<PolicyOptions> = { match: { path: '/login', method: 'POST' } }
const post = { path: '/login', method: 'POST' }
const expected: ExpectOptions = { request: post, atMost: 199, in: '1m' }
const log = { ...login, algorithm: 'sliding-log' } as const

testFindings({
  'A fixed window admits its limit twice.': [
    'expectation-fails expect[0]',
    one({ ...login, algorithm: 'fixed-window' }, { expect: [expected] }),
    one({ ...login, algorithm: 'fixed-window' }, { expect: [{ ...expected, atMost: 200 }] }),
  ],
  'An expectation is above the limit of a log.': [
    'expectation-fails expect[1]',
    one(log, { expect: [expected, { ...expected, atMost: 99 }] }),
    one(log, { expect: [expected, { ...expected, atMost: 100 }] }),
  ],
  'A single expectation needs no list.': [
    'expectation-fails expect',
    one(log, { expect: { ...expected, atMost: 99 } }),
    one(log, { expect: { ...expected, atMost: 100 } }),
  ],
  'The number of an expectation is below 0.': [
    'invalid expect[0].atMost',
    one({}, { expect: [{ ...expected, atMost: -1 }] }),
    one({}, { expect: [expected] }),
  ],
  'An expectation has an unknown field.': [
    'invalid expect[0].limit',
    one({}, { expect: [{ ...expected, limit: 7 } as ExpectOptions] }),
    one({}, { expect: [expected] }),
  ],
  'An expectation counts by a function.': [
    'invalid expect[0].per',
    one({}, { expect: [{ ...expected, per: (() => 'a') as never }] }),
    one({}, { expect: [{ ...expected, per: ['ip'] }] }),
  ],
})

test('A configuration accepts an expectation that fails.', () => {
  const broken = one(log, { expect: { ...expected, atMost: 99 }, accept: 'expectation-fails' })
  expect(found(broken)).toEqual([])
})

/** A configuration, an expectation that fails, and its message. */
const HEADER = { 'x-plan': 'pro' }
test.each<[string, ConfigOptions, Partial<ExpectOptions>, RegExp]>([
  [
    'another method',
    one(login),
    { request: { path: '/login' } },
    /any number passes: for GET \/login, "a" does not match \(method\)\.$/,
  ],
  [
    'a credential that exempts',
    one({ ...login, match: { ...login.match, jwt: false } }, { use: [createJwt({ secret: 'S' })] }),
    {},
    /any number passes: for POST \/login with a token, "a" does not match \(jwt\)\.$/,
  ],
  [
    'a missing key',
    one({ key: 'header:x-user', onMissingKey: 'skip', accept: 'spoofable-key' }),
    { per: 'header:x-user' },
    /for POST \/login without x-user, "a" skips a request without header:x-user/,
  ],
  [
    'a key of the client’s choice',
    one({ key: ['ip', 'header:x-user'], accept: 'spoofable-key' }),
    {},
    /"a" counts by header:x-user, and each value gets a quota of its own\.$/,
  ],
  [
    'an entry of allow',
    one({}, { allow: { name: 'office', ip: '198.51.100.0/24' } }),
    {},
    /for POST \/login from 198\.51\.100\.0, "a" is skipped by allow "office"\.$/,
  ],
  ['shadow', one({ mode: 'shadow' }), {}, /"a" is in shadow and refuses nothing\.$/],
  ['slots', one({ algorithm: 'concurrency' }), {}, /how many are in flight/],
  [
    'values',
    one({ distinct: 'header:x-user' }, { use: [distinct()] }),
    {},
    /"a" limits different values, and not how many/,
  ],
  ['refunds', one({ countOnly: 401 }), {}, /"a" refunds by the response\.$/],
  ...[{ countOnly: [401, 403] }, { cost: { response: 'x-cost', max: 9 } }].map(
    (change): [string, ConfigOptions, Partial<ExpectOptions>, RegExp] => [
      `refunds by ${Object.keys(change)}, beside a policy that bounds the requests`,
      several({ limit: 1000 }, { ...login, limit: 5, ...change }),
      {},
      new RegExp(
        `"a" admits \\d+: .* \\(POST /login\\)\\. "b" is no bound: it refunds by the response \\(${'countOnly' in change ? 'countOnly' : 'cost\\.response'}\\)\\.$`,
      ),
    ],
  ),
  [
    'a policy in shadow beside one that bounds the requests',
    several({ limit: 1000 }, { ...login, limit: 5, mode: 'shadow' }),
    {},
    /\(POST \/login\)\. "b" is no bound: it is in shadow and refuses nothing\.$/,
  ],
  [
    'a rule that costs nothing',
    one({ cost: [{ ...post, cost: 0 }] }),
    {},
    /charges nothing for it\.$/,
  ],
  [
    'the largest plan',
    one({ plan: 'header:x-plan', limits: { pro: 500 } }),
    {},
    /"a" admits 999 under its largest limit: .* \(POST \/login\)\.$/,
  ],
  ['no policy', { policies: [], deny: { path: '/x' } }, {}, /there is no policy\.$/],
  [
    'two policies that share the requests',
    {
      policies: [
        { name: 'a', limit: 100, window: '1m', match: { header: HEADER } },
        { name: 'b', limit: 100, window: '1m', match: { not: { header: HEADER } } },
      ],
    },
    {},
    /"a" and "b" may admit 398 together\.$/,
  ],
])('The counterexample of %s is named.', (_, config, change, message) => {
  const finding = lint({ ...config, expect: { ...expected, ...change } }).at(-1)
  expect(finding).toMatchObject({ message: expect.stringMatching(message) })
  expect(finding?.message).toContain('in 1m')
  expect(finding?.hint).toMatch(/^[A-Z].*[.]$/s)
})

test('The hint of a limit that is too large names the largest one that fits.', () => {
  const config = one(
    { ...login, algorithm: 'fixed-window' },
    { expect: { ...expected, atMost: 20 } },
  )
  const [finding] = lint(config)
  expect(finding!.hint).toBe('Set atMost to 200, or lower the limit of "a" to 10.')
  expect(found({ ...config, policies: [{ ...config.policies[0]!, limit: 10 }] })).toEqual([])
})

const most = (config: ConfigOptions, change: Partial<ExpectOptions> = {}) => {
  const written = { ...config, expect: { ...expected, atMost: 1e9, ...change } }
  return checkExpectations({ config: parseConfig(written), written })[0]!.held?.requests
}

describe('The most requests that may pass', () => {
  test.each<[string, number | undefined, ConfigOptions, Partial<ExpectOptions>?]>([
    [
      'those of the smallest policy',
      10,
      {
        policies: [
          { ...one(log).policies[0]!, limit: 10 },
          { ...one({}).policies[0]!, name: 'b' },
        ],
      },
    ],
    ['none if deny refuses all', 0, one({}, { deny: { path: '/login' } })],
    ['a larger network of the address', 199, one({ key: { ip: { v4: 24, v6: 48 } } })],
    [
      'not a smaller network',
      undefined,
      one({ key: { ip: { v6: 64 } } }),
      { per: { ip: { v6: 48 } } },
    ],
    [
      'one counter for each method',
      2 * 199,
      one({ key: ['ip', 'method'] }),
      { request: { method: 'GET' } },
    ],
    [
      'one counter for each path',
      2 * 199,
      one({ key: ['ip', 'path'] }),
      { request: { path: ['/a', '/b'] } },
    ],
    [
      'no bound by the path of a pattern',
      undefined,
      one({ key: ['ip', 'path'] }),
      { request: { path: '/a/*' } },
    ],
    ['both keys of onMissingKey', 2 * 199, one({ onMissingKey: { key: 'global' } })],
    ['the units divided by the least cost', 66, one({ cost: [{ path: '/login', cost: 3 }] })],
    [
      'the default cost if no rule is sure to match',
      199,
      one({ cost: [{ country: 'DE', cost: 3 }] }),
    ],
    [
      'the plan that the request names',
      199,
      one({ plan: 'header:x-plan', limits: { pro: 500 } }),
      { request: { header: { 'x-plan': 'free' } } },
    ],
    [
      'the largest plan of a bucket',
      999,
      one({ algorithm: 'token-bucket', plan: 'header:x-plan', limits: { pro: 500 } }),
      { request: { header: { 'x-plan': 'free' } } },
    ],
    [
      'the largest claim',
      1999,
      one(
        { limit: { claim: 'rate', max: 1000, otherwise: 10 }, key: 'jwt:sub' },
        { use: [createJwt({ secret: 'JWT_SECRET' })] },
      ),
      { per: 'jwt:sub' },
    ],
    [
      'not the exception of a secret',
      199,
      one({}, { allow: { header: { 'x-internal': 'a-secret-of-at-least-16' } } }),
    ],
    [
      'not an exception for another policy',
      199,
      {
        ...one({}),
        policies: [...one({}).policies, { name: 'b', limit: 1, window: '1s', mode: 'shadow' }],
        allow: { ip: '10.0.0.0/8', policies: 'b' },
      } as ConfigOptions,
    ],
    [
      'nobody whom the request excludes',
      199,
      one({}, { allow: { ip: '10.0.0.0/8' } }),
      { request: { not: { ip: '10.0.0.0/7' } } },
    ],
  ])('is %s.', (_, requests, config, change) => {
    expect(most(config, change)).toBe(requests)
  })
})

const terms = { limit: 10, burst: 4, windowMs: 1000, calendar: undefined }
test.each<[string, Parameters<typeof mostUnits>[0], [ms: number, units: number][]]>([
  [
    'fixed window',
    { ...terms, algorithm: 'fixed-window' },
    [
      [1, 10],
      [2, 20],
      [1000, 20],
      [1001, 20],
      [1002, 30],
      [2001, 30],
    ],
  ],
  [
    'sliding window',
    { ...terms, algorithm: 'sliding-window' },
    [
      [1, 10],
      [101, 10],
      [102, 11],
      [1000, 19],
      [2000, 29],
    ],
  ],
  [
    'log',
    { ...terms, algorithm: 'sliding-log' },
    [
      [1, 10],
      [1000, 10],
      [1001, 20],
    ],
  ],
  [
    'token bucket',
    { ...terms, algorithm: 'token-bucket' },
    [
      [1, 4],
      [101, 5],
      [1000, 13],
      [1001, 14],
    ],
  ],
  [
    'calendar day',
    { ...terms, algorithm: 'fixed-window', calendar: new Calendar('day', 'Europe/Berlin') },
    [
      [23 * 3_600_000 + 1, 20],
      [23 * 3_600_000 + 2, 30],
    ],
  ],
  [
    'calendar day in UTC',
    { ...terms, algorithm: 'fixed-window', calendar: new Calendar('day', 'UTC') },
    [
      [24 * 3_600_000 + 1, 20],
      [24 * 3_600_000 + 2, 30],
    ],
  ],
])('The closed form of a %s is exact at its edges.', (_, policy, rows) => {
  for (const [ms, units] of rows) expect(mostUnits(policy, ms), `${ms} ms`).toBe(units)
})
