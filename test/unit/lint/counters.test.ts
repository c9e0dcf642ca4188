import { expect, test } from 'vitest'
import type { ConfigOptions, PolicyOptions } from '../../../src/core/config/options.ts'
import { lint } from '../../../src/lint/lint.ts'

type Changes = Partial<PolicyOptions>
const policy = (changes: Changes = {}): PolicyOptions => ({
  name: 'per-ip',
  limit: 100,
  window: '1m',
  ...changes,
})
const config = (changes: Changes = {}, rest: Partial<ConfigOptions> = {}): ConfigOptions => ({
  policies: [policy(changes)],
  ...rest,
})

const penalty = { after: 3, within: '1m', ban: '1h' } as const

test.each<[field: string, first: Changes, second: Changes, there: string, here: string]>([
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
  'Two limiters of one app whose policies share a counter must agree on the field %s.',
  (field, first, second, there, here) => {
    const accept = ['spoofable-key', 'never-charges'] as const
    const found = lint(config({ ...second, accept: [...accept] }), config(first))
    expect(found).toEqual([
      {
        code: 'shared-counter',
        path: `policies[0].${field}`,
        message: `The policy "per-ip" of another limiter uses the same counter in Redis, and has ${there} instead of ${here}.`,
        hint: expect.stringContaining('namespace'),
      },
    ])
  },
)

test('Two limiters of one app must agree on a penalty, because bans depend only on name and key.', () => {
  const stricter = { ...penalty, after: 2 }
  const found = lint(config({ penalty: stricter, window: '1h' }), config({ penalty }))
  expect(found.map(({ code, path }) => `${code} ${path}`)).toEqual([
    'shared-counter policies[0].penalty',
  ])
})

test.each<[claim: string, changes: Changes, rest?: Partial<ConfigOptions>]>([
  ['the same terms', {}],
  ['another cost, match and mode', { cost: 5, match: { path: '/export' }, mode: 'shadow' }],
  ['another name', { name: 'admin', limit: 5 }],
  ['another window', { window: '1h', limit: 5 }],
  ['another algorithm', { algorithm: 'fixed-window', limit: 5 }],
  ['another key', { key: 'asn', limit: 5 }],
  ['another namespace', { limit: 5 }, { namespace: 'admin' }],
  ['a penalty in only one of them', { penalty }],
])('Two limiters of one app may have policies with %s.', (_, changes, rest) => {
  expect(lint(config(changes, rest), config())).toEqual([])
})

test('Each policy that differs is a finding, which a policy may accept.', () => {
  const policies = (limit: number) => [policy({ limit }), policy({ name: 'b', key: 'asn', limit })]
  const first = { policies: policies(1) }
  const second = [policy({ name: 'a', key: 'country' }), ...policies(2)]
  const found = lint({ policies: second }, first).map(({ path }) => path)
  expect(found).toEqual(['policies[1].limit', 'policies[2].limit'])
  const accepted = second.map((one) => ({ ...one, accept: 'shared-counter' as const }))
  expect(lint({ policies: accepted }, first)).toEqual([])
})

test('A policy that differs only from the last of several limiters is a finding.', () => {
  expect(lint(config(), config(), config({ limit: 5 }))).toMatchObject([{ code: 'shared-counter' }])
})

test('Another limiter with an error is not compared. Its own findings name the error.', () => {
  expect(lint(config(), { policies: [{ name: 'per-ip' }] })).toEqual([])
})
