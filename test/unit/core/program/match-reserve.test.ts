import { describe, expect, test } from 'vitest'
import { floorUnits } from '../../../../src/core/base/units.ts'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import { createMatcher } from '../../../support/create-matcher.ts'
import { base } from '../../../support/match.ts'
import { problems, valid } from '../../../support/parse.ts'

const SHARE = 'a number from 0, below 1'

async function floorOf(policy: Partial<PolicyOptions>, path = '/', headers = {}) {
  const describeRequest = createMatcher({
    policies: [{ name: 'a', ...base, limit: 100, ...policy }],
  })
  const ip = { 'cf-connecting-ip': '192.0.2.1' }
  const { policies } = await describeRequest(path, { headers: { ...ip, ...headers } })
  return policies.map(({ floor }) => floor)
}

describe('the floor of a request', () => {
  const reserve = [
    { match: { path: '/checkout/*' }, share: 0 },
    { match: { header: { 'x-bot': true } }, share: 0.5 },
    { share: 0.2 },
  ] satisfies PolicyOptions['reserve']

  test('The first rule that matches a request gives its floor.', async () => {
    expect(await floorOf({ reserve }, '/checkout/pay', { 'x-bot': '1' })).toEqual([undefined])
    expect(await floorOf({ reserve }, '/', { 'x-bot': '1' })).toEqual([50])
    expect(await floorOf({ reserve })).toEqual([20])
    expect(await floorOf({ reserve: reserve.slice(0, 2) })).toEqual([undefined])
    expect(await floorOf({})).toEqual([undefined])
  })

  test('The floor is a share of the limit of the plan, and of the burst of a token bucket.', async () => {
    const plans = { plan: 'header:x-plan', limits: { pro: 1000 } } as const
    expect(await floorOf({ reserve, ...plans }, '/', { 'x-plan': 'pro' })).toEqual([200])
    expect(await floorOf({ reserve, ...plans }, '/', { 'x-plan': 'none' })).toEqual([20])
    expect(await floorOf({ reserve, algorithm: 'token-bucket', burst: 10 })).toEqual([2])
    expect(await floorOf({ reserve, algorithm: 'concurrency', limit: 6 })).toEqual([2])
  })

  test('If a path has several readings, the largest share counts.', async () => {
    expect(await floorOf({ reserve }, '/checkout/..;/')).toEqual([20])
    expect(
      await floorOf({ reserve: [{ match: { path: '/a/*' }, share: 0.9 }] }, '/a/..;/'),
    ).toEqual([90])
  })

  test.each([
    [0.55, 100, 55],
    [0.07, 100, 7],
    [0.2, 1, 1],
    [0.2, 11, 3],
    [0, 100, 0],
    [0.999_999, 3_002_399_751_580, 3_002_396_749_181],
    [1e-9, 2 ** 51, 2_251_800],
  ])('A share of %d of %i units is %i units.', (share, limit, units) => {
    expect(floorUnits({ algorithm: 'fixed-window', limit, burst: 1 }, share)).toBe(units)
  })
})

test.each([
  [{ share: 1 }, `reserve[0].share: ${SHARE} | 1`],
  [{ share: -0.1 }, `reserve[0].share: ${SHARE} | -0.1`],
  [{ share: Number.NaN }, `reserve[0].share: ${SHARE} | NaN`],
  [{ share: '0.2' }, `reserve[0].share: ${SHARE} | "0.2"`],
  [{}, `reserve[0].share: ${SHARE} | nothing`],
  [{ share: 0, path: '/a' }, 'reserve[0].path: one of the fields match, share | "/a"'],
  [{ share: 0, match: { path: 'a' } }, 'reserve[0].match.path: a path like'],
])('A rule of reserve with %j is a problem.', (rule, problem) => {
  const [found] = problems({ policies: [{ ...valid, reserve: [rule] }] })
  expect(found).toContain(problem)
})

test('A reserve is a list of rules, and any algorithm may have one.', () => {
  expect(problems({ policies: [{ ...valid, reserve: 0.2 }] })[0]).toContain('a list of rules')
  for (const algorithm of ['sliding-log', 'token-bucket', 'concurrency']) {
    const policies = [{ ...valid, algorithm, reserve: [{ share: 0.2 }] }]
    expect(parseConfig({ policies }).policies[0]!.reserve).toEqual([{ condition: {}, share: 0.2 }])
  }
})
