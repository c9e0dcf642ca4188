/** Limits by name and key: the linter reads each as a policy with these terms. */
import { expect, test } from 'vitest'
import { observe } from '../../../src/features/observe/index.ts'
import { parseLimitsConfig } from '../../../src/limits/limits.ts'
import { lintLimits } from '../../../src/lint/lint.ts'

const findingsOf = (limits: object, options: object = {}) =>
  lintLimits({ limits, ...options }, parseLimitsConfig as never)

const good = { limit: 100, window: '1m' }

test.each<[finding: string, broken: object, nearMiss: object]>([
  ['unlikely-duration limits.b.window', { window: 60 }, { window: '60s' }],
  ['unlikely-duration limits.b.wait', { wait: 2 }, { wait: '2s' }],
  ['unlikely-duration limits.b.deadline', { deadline: 5 }, { deadline: '1s' }],
  ['cost-never-fits limits.b.cost', { cost: 101 }, { cost: 100 }],
  [
    'short-wait limits.b.wait',
    { algorithm: 'fixed-window', wait: '2s' },
    { algorithm: 'token-bucket', wait: '2s' },
  ],
  [
    'large-lease limits.b.lease.max',
    { lease: { max: 200, ttl: '1s' } },
    { lease: { max: 20, ttl: '1s' } },
  ],
  [
    'short-ban limits.b.penalty.ban',
    { penalty: { after: 3, within: '10m', ban: '30s' } },
    { penalty: { after: 3, within: '10m', ban: '1h' } },
  ],
  [
    'large-log limits.b.limit',
    { algorithm: 'sliding-log', limit: 5000 },
    { algorithm: 'sliding-log', limit: 500 },
  ],
])('The linter reports %s, as of a policy.', (finding, broken, nearMiss) => {
  const found = (change: object) =>
    findingsOf({ a: good, b: { ...good, ...change } }).map(({ code, path }) => `${code} ${path}`)
  expect(found(broken)).toEqual([finding])
  expect(found(nearMiss)).toEqual([])
})

test('The linter reads the options beside limits.', () => {
  expect(findingsOf({ a: good }, { deadline: 5 })).toMatchObject([
    { code: 'unlikely-duration', path: 'deadline' },
  ])
  expect(findingsOf({ a: good }, { use: [observe({ to: 'log' })], namespace: 'b' })).toEqual([])
})

test('A limit accepts findings as a policy does.', () => {
  const accept = ['unlikely-duration', 'large-logs'] as never
  expect(findingsOf({ a: { ...good, window: 500, accept } })).toMatchObject([
    { code: 'invalid', path: 'limits.a.accept', hint: "Did you mean 'large-log'?" },
  ])
})

test('A configuration without a limit limits nothing.', () => {
  expect(findingsOf({})).toEqual([
    {
      code: 'no-policies',
      path: 'limits',
      message: 'The configuration has no limit, so it limits nothing.',
      hint: "Add a limit, such as invites: { limit: 20, window: '1d' }.",
    },
  ])
})

test('The linter does not compare the calls of two limits, and knows neither their keys nor their costs.', () => {
  expect(findingsOf({ a: good, b: { ...good, limit: 1000 }, login: { ...good, cost: 0 } })).toEqual(
    [],
  )
})

const BY_CALL =
  "limits() decides by a name and a key, without a request: limits: { invites: { limit: 20, window: '1d' } }."

test.each<[limit: object, path: string, message: string | RegExp, hint: string]>([
  [{ limt: 5 }, 'limits.a.b.limt', 'unknown field', 'Did you mean limit?'],
  [
    { windowMs: 1000 },
    'limits.a.b.windowMs',
    'unknown field',
    "Write window: '1m', or a number of milliseconds.",
  ],
  [{ prefix: 'x' }, 'limits.a.b.prefix', 'unknown field', 'Write namespace beside limits.'],
  ...['keyGenerator', 'path', 'skip', 'skipFailedRequests', 'handler'].map(
    (name): [object, string, string, string] => [
      { [name]: '/' },
      `limits.a.b.${name}`,
      'unknown field',
      BY_CALL,
    ],
  ),
  ...['key', 'match', 'plan', 'refusal', 'countOnly'].map(
    (name): [object, string, RegExp, string] => [
      { [name]: 'ip' },
      `limits.a.b.${name}`,
      /^expected nothing, got "ip"\. limits\(\) decides without a request/,
      '',
    ],
  ),
  [
    { other: 5 },
    'limits.a.b.other',
    /^expected one of the fields limit, algorithm, [^.]*, got 5$/,
    '',
  ],
])(
  'The problem of a limit with %j has a hint that fits a limit.',
  (change, path, message, hint) => {
    expect(findingsOf({ 'a.b': { ...good, ...change } })).toEqual([
      { code: 'invalid', path, message: expect.stringMatching(message), hint },
    ])
  },
)

test.each([
  ['key', BY_CALL],
  ['policy', BY_CALL],
  ['limit', BY_CALL],
  ['keyPrefix', 'Write namespace.'],
  ['policiesByName', ''],
  ['namespce', 'Did you mean namespace?'],
])('The problem of the option %s beside limits has a hint that fits limits.', (name, hint) => {
  expect(findingsOf({ a: good }, { [name]: 'x' })).toMatchObject([
    { code: 'invalid', path: name, hint },
  ])
})
