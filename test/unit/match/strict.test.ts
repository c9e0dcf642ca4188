/** A request that origins read in several ways counts in the way that is strictest for its client. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ConfigOptions, MatchOptions } from '../../../src/config/options.ts'
import { isMatch, type Matched } from '../../../src/match/match.ts'
import { createMatcher } from '../../support/create-matcher.ts'

const quota = { limit: 1000, window: '1m', key: 'global' } as const

describe('A repeated query parameter or header field', () => {
  const rules = [
    { query: { plan: 'free' }, cost: 1 },
    { header: { 'x-plan': 'free' }, cost: 2 },
    { cost: 25 },
  ]
  const costOf = async (url: string, headers: [string, string][] = []) => {
    const match = createMatcher({ policies: [{ name: 'p', ...quota, cost: rules }] })
    const { policies } = await match(url, { headers })
    return policies.filter(isMatch).map(({ cost }) => cost)
  }

  test.each<[string, [string, string][], number]>([
    ['/?plan=free', [], 1],
    ['/?plan=free&plan=free', [], 1],
    ['/?plan=free&plan=pro', [], 25],
    ['/?plan=pro&plan=free', [], 25],
    ['/?plan=free&plan[]=pro', [], 25],
    ['/?plan%5B%5D=free', [], 25],
    ['/?plan=free;plan=pro', [], 25],
    ['/?x=1;plan=free', [], 25],
    ['/?plan=free&other=pro', [], 1],
    ['/', [['x-plan', 'free']], 2],
    [
      '/',
      [
        ['x-plan', 'free'],
        ['x-plan', 'pro'],
      ],
      25,
    ],
  ])(
    '%s with the fields %j costs %i units, the most that an origin may read.',
    async (url, headers, units) => {
      expect(await costOf(url, headers)).toEqual([units])
    },
  )

  const applies = async (match: MatchOptions, url: string, headers: [string, string][] = []) => {
    const found = await createMatcher({ policies: [{ name: 'p', ...quota, match }] })(url, {
      headers,
    })
    return found.policies.some(isMatch)
  }

  test('A policy applies if one of the values matches, and `not` exempts only if all of them do.', async () => {
    const [free, both] = ['/?plan=free', '/?plan=free&plan=pro']
    expect(await applies({ query: { plan: 'pro' } }, both)).toBe(true)
    expect(await applies({ query: { plan: 'x' } }, both)).toBe(false)
    expect(await applies({ query: { plan: 'pro' } }, '/?x=1;plan=pro')).toBe(true) // Rack before 3
    expect(await applies({ not: { query: { plan: 'free' } } }, free)).toBe(false)
    expect(await applies({ not: { query: { plan: 'free' } } }, both)).toBe(true)
    const lines: [string, string][] = [
      ['x-plan', 'free'],
      ['x-plan', 'pro'],
    ]
    expect(await applies({ header: { 'x-plan': 'pro' } }, '/', lines)).toBe(true)
    expect(await applies({ not: { header: { 'x-plan': 'free*' } } }, '/', lines)).toBe(true)
  })

  test('The comma within a User-Agent is no second line.', async () => {
    const agent: [string, string][] = [['user-agent', 'Mozilla/5.0 (KHTML, like Gecko) Safari']]
    expect(await applies({ not: { header: { 'user-agent': 'Mozilla/*' } } }, '/', agent)).toBe(
      false,
    )
    const found = await createMatcher({
      allow: { header: { 'user-agent': '*Safari' } },
      policies: [{ name: 'p', ...quota }],
    })('/', { headers: agent })
    expect(found.policies).toMatchObject([{ unmet: 'allow' }])
  })
})

describe('Over all readings', () => {
  const names = ['a', 'b'] as const
  const value = fc.constantFrom('x', 'y', 'z')
  const pattern = fc.constantFrom<string | true>('x', 'y', 'x*', '*z', '*y*', true)
  const conditionOf = (field: 'query' | 'header') =>
    fc.dictionary(fc.constantFrom(...names), pattern, { minKeys: 1, maxKeys: 2 }).map((values) =>
      field === 'query'
        ? { query: values }
        : {
            header: Object.fromEntries(
              Object.entries(values).map(([name, one]) => [`x-${name}`, one]),
            ),
          },
    )
  const plain = fc.oneof(conditionOf('query'), conditionOf('header'))
  const both = fc.tuple(conditionOf('query'), conditionOf('header')).map(([query, header]) => ({
    ...query,
    ...header,
  }))
  const condition: fc.Arbitrary<MatchOptions> = fc.oneof(
    plain,
    both,
    plain.map((not) => ({ not })),
    fc.tuple(plain, plain).map(([one, not]) => ({ ...one, not })),
  )
  const rules = fc.array(
    fc.tuple(condition, fc.integer({ min: 1, max: 50 })).map(([one, cost]) => ({ ...one, cost })),
    { maxLength: 3 },
  )
  const config: fc.Arbitrary<ConfigOptions> = fc.record({
    deny: condition.map((one) => ({ name: 'denied', ...one })),
    allow: condition.map((one) => ({ name: 'allowed', ...one, policies: ['p0'] })),
    policies: fc
      .array(fc.record({ match: condition, rules, otherwise: fc.integer({ min: 1, max: 50 }) }), {
        minLength: 1,
        maxLength: 3,
      })
      .map((all) =>
        all.map(({ match, rules: list, otherwise }, index) => ({
          name: `p${index}`,
          ...quota,
          match,
          cost: list.length > 0 ? { rules: list, otherwise } : otherwise,
        })),
      ),
  })
  const pairs = fc.array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 4 })

  type Pair = readonly [string, string]
  const send = (match: ReturnType<typeof createMatcher>, query: Pair[], header: Pair[]) =>
    match(`/?${query.map((pair) => pair.join('=')).join('&')}`, {
      headers: header.map(([name, one]) => [`x-${name}`, one] as [string, string]),
    })
  /** The readings of a list: of each name the first, the last, or any other value. */
  const readingsOf = (list: Pair[]): Pair[][] =>
    names.reduce<Pair[][]>(
      (readings, name) => {
        const values = list.filter(([one]) => one === name)
        if (values.length === 0) return readings
        return readings.flatMap((reading) => values.map((one) => [...reading, one]))
      },
      [[]],
    )
  const costs = ({ policies }: Matched) =>
    new Map(policies.filter(isMatch).map(({ policy, cost }) => [policy.name, cost]))
  const isAllowed = ({ policies }: Matched, name: string) =>
    policies.some((one) => !isMatch(one) && one.policy.name === name && one.unmet === 'allow')

  test('A request never costs less, meets fewer policies or enters more lists than a reading of it that is sent plainly.', async () => {
    let ambiguous = 0
    await fc.assert(
      fc.asyncProperty(config, pairs, pairs, async (options, query, header) => {
        const match = createMatcher(options)
        const sent = await send(match, query, header)
        for (const one of readingsOf(query)) {
          for (const other of readingsOf(header)) {
            const read = await send(match, one, other)
            if (read.denied) {
              expect(sent.denied).toEqual(read.denied)
              continue
            }
            if (sent.denied) continue
            if (one.length < query.length || other.length < header.length) ambiguous += 1
            for (const [name, cost] of costs(read)) {
              expect(isAllowed(sent, name)).toBe(false)
              expect(costs(sent).get(name) ?? 0).toBeGreaterThanOrEqual(cost)
            }
          }
        }
      }),
      { numRuns: 300 },
    )
    expect(ambiguous).toBeGreaterThan(100)
  })
})
