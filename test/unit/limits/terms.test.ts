/** The terms of `limits()`: parsed like those of a policy, without the schema of requests. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ConfigError } from '../../../src/core/base/errors.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { type LimitTerms, limits, parseLimitsConfig } from '../../../src/limits/limits.ts'
import { parseLimits } from '../../../src/limits/terms.ts'

/** Mostly valid values. */
const of = (wrong: unknown, ...valid: unknown[]) =>
  fc.oneof(
    { arbitrary: fc.constantFrom(...valid), weight: 20 },
    { arbitrary: fc.constant(wrong), weight: 1 },
  )
const rarely = <T>(values: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary: fc.constant(undefined), weight: 8 }, { arbitrary: values, weight: 1 })

const terms = fc.record({
  limit: of(1.5, 1, 20, 9_000, 20_000, 2 ** 52),
  window: of('soon', '1s', '10s', '1h', 5000, 'day'),
  algorithm: rarely(
    of('leaky', 'fixed-window', 'sliding-log', 'concurrency', 'token-bucket', 'gcra'),
  ),
  timeZone: rarely(of('Mars', 'Europe/Berlin')),
  burst: rarely(of(0, 1, 30)),
  align: rarely(of('noon', 'clock', 'first-request')),
  mode: rarely(of('off', 'enforce', 'shadow')),
  deadline: rarely(of('30d', '1s')),
  onStoreError: rarely(of('retry', 'allow', 'deny', 'local')),
  localShare: rarely(of(0, 0.5)),
  cost: rarely(of(-1, 0, 3)),
  wait: rarely(of('90s', '2s')),
  overrides: rarely(of(1, true)),
  lease: rarely(of({ max: 1 }, { max: 5, ttl: '1s' })),
  penalty: rarely(of({ after: 0 }, 'manual', { after: 2, within: '1m', ban: '1h' })),
})

/** What a parser makes of a configuration: its normal form without absent fields, or its problems. */
function outcomeOf(parse: () => object) {
  try {
    return JSON.parse(JSON.stringify(parse())) as Record<string, unknown>
  } catch (error) {
    return { problems: new Set((error as ConfigError).problems.map(({ path, got }) => path + got)) }
  }
}

test('Terms have the normal form of a policy with one key, or its problems.', () => {
  let valid = 0
  const property = fc.property(fc.array(terms, { minLength: 1, maxLength: 2 }), (list) => {
    const named = list.map((own, index) => [`limit-${index}`, own] as const)
    const ours = outcomeOf(() =>
      parseLimits(Object.fromEntries(named) as never, { deadline: '2s' }, defaultFields),
    )
    const policies = named.map(([name, own]) => ({ name, key: 'global', ...own }))
    const whole = outcomeOf(() => parseConfig({ policies, deadline: '2s' }, defaultFields))
    if ('problems' in whole) {
      const path = (text: string) => text.replace(/^policies\[(\d+)\]/, 'limit-$1')
      const expected = new Set([...(whole.problems as Set<string>)].map(path))
      expect(ours.problems).toEqual(expected)
      return
    }
    valid += 1
    expect(ours.policies).toEqual(whole.policies)
    expect(whole).toMatchObject(ours)
  })
  fc.assert(property, { numRuns: 300 })
  expect(valid).toBeGreaterThan(50)
})

describe('A problem has its path in the terms:', () => {
  const window = '1h'
  test.each([
    ['of a value', { api: { limit: 0, window } }, {}, 'api.limit: expected a whole number'],
    ['of a name', { 'a b': { limit: 1, window } }, {}, 'a b.name: expected a name of up to 64'],
    [
      'of a field that needs a request',
      { api: { limit: 1, window, key: 'ip' } },
      {},
      'api.key: expected nothing, got "ip". limits() decides without a request. Its terms are limit,',
    ],
    [
      'of an unknown field',
      { api: { limit: 1, window, limt: 5 } },
      {},
      /^api\.limt: expected one of the fields limit, algorithm, [^.]*, got 5$/,
    ],
    [
      'of a part of a field',
      { api: { limit: 1, window, penalty: { after: 2, within: '1m' } } },
      {},
      'api.penalty.ban: expected a duration',
    ],
    [
      'of two fields',
      { api: { limit: 1, window, wait: '1s', lease: { max: 2, ttl: '1s' } } },
      {},
      'api.lease: expected no value (the place of a request that waits is in the store)',
    ],
    [
      'of an option',
      { api: { limit: 1, window } },
      { stor: 1 },
      'stor: expected one of the fields deadline, clock,',
    ],
    ['of headers', { api: { limit: 1, window } }, { headers: 'github' }, 'draft-11, off'],
  ])('%s.', (_, terms, options, message) => {
    expect(() => limits(terms as Record<string, LimitTerms>, options as never)).toThrow(message)
  })
})

const calls = { limit: 1, window: '1h' } as const
const byName =
  "limits: expected the terms by name, such as { invites: { limit: 20, window: '1d' } }"

test.each([
  ['a list of policies', [{ name: 'calls', ...calls }]],
  ['an object with policies', { policies: [{ name: 'calls', ...calls }] }],
  ['an object with policies by name', { policies: { calls } }],
  ['an object with limits', { limits: { calls } }],
  ['nothing', undefined],
])('%s is not the terms of limits, here and in a configuration of limits.', (_, terms) => {
  expect(() => limits(terms as never)).toThrow(byName)
  expect(() => parseLimitsConfig({ limits: terms } as never)).toThrow(byName)
})

test.each(['policies', 'limits'])('A limit may have the name %s.', (name) => {
  expect(parseLimits({ [name]: calls }, {}, []).policies).toMatchObject([{ name }])
  expect(() => limits({ [name]: { window: '1h' } } as never)).toThrow(`${name}.limit: expected`)
})
