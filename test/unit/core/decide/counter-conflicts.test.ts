import { afterEach, expect, test } from 'vitest'
import { ConfigError } from '../../../../src/core/base/errors.ts'
import type { ConfigOptions, PolicyOptions } from '../../../../src/core/config/options.ts'
import { bans } from '../../../../src/features/bans/index.ts'
import { shards } from '../../../../src/features/shards/index.ts'
import { rateLimiter } from '../../../../src/hosts/app/middleware.ts'
import { createGateway } from '../../../../src/hosts/worker/gateway.ts'
import { errorOf } from '../../../support/parse.ts'

type Changes = Partial<PolicyOptions>
const policy = (changes: Changes = {}): PolicyOptions => ({
  name: 'per-ip',
  limit: 100,
  window: '1m',
  ...changes,
})
const limiter = (changes: Changes = {}, config: Partial<ConfigOptions> = {}) =>
  rateLimiter({ policies: [policy(changes)], use: [bans()], ...config })

// The next test must run in another turn of the event loop.
afterEach(() => new Promise((resolve) => setTimeout(resolve)))

const problemsOf = (run: () => unknown) => errorOf(run)?.problems ?? []

const penalty = { after: 3, within: '1m', ban: '10s' } as const

test.each<[field: string, first: Changes, second: Changes, expected: string, got: string]>([
  ['limit', {}, { limit: 5 }, '100', '5'],
  ['limit', {}, { limit: 5, cost: 2, match: { path: '/a' }, mode: 'shadow' }, '100', '5'],
  ['burst', { algorithm: 'token-bucket' }, { algorithm: 'token-bucket', burst: 7 }, '100', '7'],
  [
    'limits',
    { limits: { pro: 200 }, plan: 'header:x-plan' },
    { limits: { pro: 300 }, plan: 'header:x-plan' },
    '{"pro":200}',
    '{"pro":300}',
  ],
  ['limits', {}, { limits: { pro: 200 }, plan: 'header:x-plan' }, 'none', '{"pro":200}'],
  ['limit', { key: () => 'a' }, { key: () => 'b', limit: 5 }, '100', '5'],
])(
  'Two limiters of one Worker whose policies share a counter must agree on the field %s.',
  (field, first, second, expected, got) => {
    limiter(first)
    const [problem, ...others] = problemsOf(() => limiter(second))
    expect(others).toEqual([])
    expect(problem).toEqual({
      path: `policies[0].${field}`,
      expected: `${expected}, as in the policy "per-ip" of another rateLimiter() or createGateway() (both policies use the same counter in Redis: rename this policy, or set a namespace in one of the two configurations)`,
      got,
    })
  },
)

test('Two limiters of one Worker must agree on a penalty, because bans depend only on name and key.', () => {
  limiter({ penalty })
  const stricter = { ...penalty, after: 2 }
  expect(problemsOf(() => limiter({ penalty: stricter, window: '1h' }))).toMatchObject([
    { path: 'policies[0].penalty', got: expect.stringContaining('"after":2') },
  ])
})

test.each<[claim: string, changes: Changes, config?: Partial<ConfigOptions>]>([
  ['the same terms', {}],
  ['another cost, match and mode', { cost: 5, match: { path: '/export' }, mode: 'shadow' }],
  ['another name', { name: 'admin', limit: 5 }],
  ['another window', { window: '1h', limit: 5 }],
  ['another algorithm', { algorithm: 'fixed-window', limit: 5 }],
  ['another key', { key: 'header:x-key', limit: 5 }],
  ['another namespace', { limit: 5 }, { namespace: 'admin' }],
  ['other databases', { limit: 5 }, { use: [shards(['eu-1', 'eu-2'])] }],
  ['readable keys in one of them', { limit: 5 }, { hashKeys: false }],
  ['a penalty in only one of them', { penalty }],
])('Two limiters of one Worker may have policies with %s.', (_, changes, config) => {
  limiter()
  expect(() => limiter(changes, config)).not.toThrow()
})

test('A gateway and a limiter of one Worker must agree on a limit.', () => {
  createGateway({ policies: [policy()] })
  expect(() => limiter({ limit: 5 })).toThrow(ConfigError)
  expect(() => createGateway({ policies: [policy({ limit: 5 })] })).toThrow(ConfigError)
})

test('The error names every policy that differs.', () => {
  const policies = (limit: number) => [policy({ limit }), policy({ name: 'b', limit })]
  rateLimiter({ policies: policies(1) })
  expect(() => rateLimiter({ policies: [policy({ name: 'a' }), ...policies(2)] })).toThrow(
    /^2 problems\n {2}policies\[1\]\.limit: .*\n {2}policies\[2\]\.limit: /,
  )
})

test('A configuration that replaces another one in a later turn, as in a hot reload, is not compared.', async () => {
  limiter()
  await Promise.resolve()
  expect(() => limiter({ limit: 5 })).not.toThrow()
})
