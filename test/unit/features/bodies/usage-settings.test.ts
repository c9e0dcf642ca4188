import { expect, test } from 'vitest'
import { ConfigError } from '../../../../src/core/base/errors.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { rateLimiter } from '../../../../src/hosts/node/node.ts'
import { leases } from '../../../support/features.ts'

const COST = { usage: 'usage.total_tokens', otherwise: 500, max: 4000 }

/** The problems of a configuration with one policy. */
function problemsOf(
  cost: object,
  policy: object = {},
  more: object = { use: [bodies(), leases()] },
) {
  try {
    parseConfig({
      policies: [{ name: 'tokens', limit: 10_000, window: '1h', cost, ...policy }],
      ...more,
    })
    return []
  } catch (error) {
    return (error as ConfigError).problems.map(({ path, expected }) => `${path}: ${expected}`)
  }
}

test('A cost with usage needs max only.', () => {
  expect(problemsOf(COST)).toEqual([])
  expect(problemsOf({ usage: ['a.b', 'c'], max: 1, cut: true })).toEqual([])
  expect(problemsOf({ usage: { 'a.b': 0.2, c: 15, d: -0.1 }, max: 1 })).toEqual([])
})

test('A cost with usage needs bodies.', () => {
  expect(problemsOf(COST, {}, {})).toEqual([
    `${at}.cost: use: [bodies()], with import { bodies } from 'sluice/features'`,
  ])
})

test('A cut without usage is refused, also without bodies.', () => {
  expect(problemsOf({ cut: true }, {}, {})).toEqual([`${at}.cost.cut: nothing without usage`])
  expect(problemsOf({ cut: false }, {}, {})).toEqual([])
})

const WEIGHTS =
  'paths with their units, of which one is above 0, like { "usage.completion_tokens": 1 }'
const at = 'policies[0]'
test.each<[object, object, string]>([
  [
    { ...COST, max: undefined },
    {},
    `${at}.cost.max: the highest cost of a response, because usage is set`,
  ],
  [{ ...COST, max: 400 }, {}, `${at}.cost.max: at least 500, which a request costs otherwise`],
  [{ ...COST, otherwise: 0 }, {}, `${at}.cost.otherwise: at least 1 with usage`],
  [{ ...COST, usage: 'usage total' }, {}, `${at}.cost.usage: a path like "usage.total_tokens"`],
  [{ ...COST, usage: ['a', 'b..c'] }, {}, `${at}.cost.usage[1]: a path like "usage.total_tokens"`],
  [{ ...COST, usage: 7 }, {}, `${at}.cost.usage: a path like "usage.total_tokens"`],
  [{ ...COST, usage: ['a', 7] }, {}, `${at}.cost.usage[1]: a path like "usage.total_tokens"`],
  [{ ...COST, usage: { 'a b': 1 } }, {}, `${at}.cost.usage: a path like "usage.total_tokens"`],
  [{ ...COST, usage: {} }, {}, `${at}.cost.usage: ${WEIGHTS}`],
  [{ ...COST, usage: { a: 0, b: -1 } }, {}, `${at}.cost.usage: ${WEIGHTS}`],
  [{ ...COST, usage: { a: 1, b: Number.NaN } }, {}, `${at}.cost.usage: ${WEIGHTS}`],
  [{ ...COST, usage: { a: Number.POSITIVE_INFINITY } }, {}, `${at}.cost.usage: ${WEIGHTS}`],
  [{ ...COST, usage: { a: '2' } }, {}, `${at}.cost.usage: ${WEIGHTS}`],
  [{ ...COST, response: 'X-Cost' }, {}, `${at}.cost.response: no value (usage sets the cost)`],
  [{ cut: true }, {}, `${at}.cost.cut: nothing without usage`],
  [COST, { algorithm: 'concurrency' }, `${at}.cost.usage: no value (a slot has no cost)`],
  [
    COST,
    { lease: { max: 10, ttl: '1s' } },
    `${at}.lease: no value (the cost is known only after the response)`,
  ],
])('The cost %j with %j is refused with one problem.', (cost, policy, problem) => {
  expect(problemsOf(cost, policy)).toEqual([problem])
})

test('sluice/node refuses a cost with usage, because it does not see the body of the response.', () => {
  const options = {
    clientAddress: 'socket' as const,
    policies: [{ name: 'tokens', limit: 10_000, window: '1h' as const, cost: COST }],
    use: [bodies()],
  }
  expect(() => rateLimiter(options)).toThrow(ConfigError)
  expect(() => rateLimiter(options)).toThrow('policies[0].cost.usage')
})
