import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { StoreState } from '../../../../src/core/connection/store.ts'
import { bindingOf, limitState, limitStates, limitsOf } from '../../../../src/core/decide/limit.ts'
import type { Match } from '../../../../src/core/program/match.ts'
import { nameValues } from '../../../../src/features/distinct/stages.ts'
import { distinct, overrides } from '../../../support/features.ts'

const [a, b] = parseConfig({
  policies: [
    { name: 'a', limit: 10, window: '1m' },
    { name: 'b', limit: 10, window: '1m' },
  ],
}).policies
const of = (terms = a!): Match => ({ terms, partitionKey: [], cost: 1 })
const further = (terms = a!): Match => ({ ...of(terms), isFurther: true })
const state = (change: Partial<StoreState> = {}): StoreState => ({
  allowed: true,
  remaining: 5,
  retryAfterMs: 0,
  resetAfterMs: 30_000,
  nextAfterMs: 6_000,
  ...change,
})
const refusing = { allowed: false, remaining: 0 }

test('Quotas that a request selects by one policy are one limit state, in order, and those that a call names have one each.', () => {
  const matches = [of(b), of(a), further(a), further(a), of(a), further(b)]
  const limits = limitStates(
    matches,
    matches.map(() => state()),
  )
  expect(limits.map(({ policy }) => policy)).toEqual(['b', 'a', 'a', 'b'])
})

describe('the state of several quotas of one policy', () => {
  const combined = (...states: Partial<StoreState>[]) => {
    const matches = states.map((_, index) => (index === 0 ? of() : further()))
    const [found] = limitStates(matches, states.map(state))
    const reversed = limitStates(matches, states.toReversed().map(state))
    expect(reversed).toEqual([found])
    return found
  }

  test.each<[string, Partial<StoreState>[], object]>([
    [
      'the refusal of one quota, and its wait',
      [{ ...refusing, retryAfterMs: 700, nextAfterMs: 700 }, { resetAfterMs: 40_000 }],
      { allowed: false, remaining: 0, retryAfterMs: 700, nextAfterMs: 700, resetAfterMs: 40_000 },
    ],
    [
      'the longest wait of two refusals',
      [
        { ...refusing, retryAfterMs: 700, nextAfterMs: 700 },
        { ...refusing, retryAfterMs: 900, nextAfterMs: 900 },
      ],
      { allowed: false, retryAfterMs: 900, nextAfterMs: 900 },
    ],
    [
      'null as the longest wait',
      [
        { ...refusing, retryAfterMs: null },
        { ...refusing, retryAfterMs: 900 },
      ],
      { allowed: false, retryAfterMs: null },
    ],
    [
      'the smallest remaining quota, and the time of its next unit',
      [
        { remaining: 2, nextAfterMs: 100 },
        { remaining: 3, nextAfterMs: 9_000 },
      ],
      { allowed: true, remaining: 2, nextAfterMs: 100 },
    ],
    [
      'a refusal, and the smaller remaining quota of another one',
      [
        { allowed: false, remaining: 3, retryAfterMs: 700 },
        { remaining: 2, nextAfterMs: 100 },
      ],
      { allowed: false, remaining: 2, retryAfterMs: 700 },
    ],
    [
      'the longest ban',
      [
        { ...refusing, retryAfterMs: 900, bannedForMs: 900 },
        { ...refusing, retryAfterMs: 950 },
      ],
      { allowed: false, remaining: 0, retryAfterMs: 950, bannedForMs: 900 },
    ],
    ['the earliest decidedAt', [{ decidedAt: 20 }, { decidedAt: 10 }], { decidedAt: 10 }],
    [
      'the smallest remaining quota of three',
      [{ remaining: 3 }, { remaining: 1 }, { remaining: 2 }],
      { remaining: 1 },
    ],
  ])('The state of several quotas of a policy has %s.', (_, states, expected) => {
    expect(combined(...states)).toMatchObject(expected)
  })
})

test('The quota that binds has the least remaining, or refuses for the longest time.', () => {
  const matches = [of(), { ...further(), cost: 2 }]
  for (const [one, other] of [
    [{ remaining: 2 }, { remaining: 3 }],
    [
      { ...refusing, retryAfterMs: 900 },
      { ...refusing, retryAfterMs: 700 },
    ],
  ]) {
    expect(bindingOf(matches, [state(one), state(other)])).toEqual([matches[0]])
    expect(bindingOf(matches, [state(other), state(one)])).toEqual([matches[1]])
    const five = [of(b), ...matches, of(b), further(b)]
    const states = [{}, other, one, one, other].map(state)
    expect(bindingOf(five, states).map((match) => five.indexOf(match))).toEqual([0, 2, 3])
  }
})

test('A public state has no field of the store: it names each of its fields.', () => {
  const inside = { fallback: { by: 'local' as const }, leased: 5, ticket: 'a' }
  const more = { reserved: 1, limit: 7, overriddenForMs: 900, bannedForMs: 800, decidedAt: 20 }
  const known = state({ ...refusing, ...more })
  expect(limitState(of(), { ...known, ...inside })).toEqual(limitState(of(), known))
  expect(limitState(of(), { ...known, ...inside })).toMatchObject({ ...refusing, ...more })
  expect(Object.keys(limitState(of(), { ...state(), ...inside })).sort()).toEqual(
    ['policy', 'mode', 'limit', 'windowMs', 'cost', ...Object.keys(state())].sort(),
  )
})

test('During a ban nothing remains, and no wait ends before the ban. The window is the current period.', () => {
  const banned = state({ ...refusing, remaining: 3, retryAfterMs: 50_000, bannedForMs: 50_000 })
  expect(limitState({ ...of(), period: [0, 7_000, 15_000] }, banned)).toMatchObject({
    windowMs: 7_000,
    remaining: 0,
    resetAfterMs: 50_000,
    nextAfterMs: 50_000,
  })
})

// A body of a few kB may cost as many units as it has messages.
test.each<[string, object, number]>([
  ['the limit', {}, 3],
  ['the largest limit of an operator', { overrides: true }, 10_000],
])(
  'A cost of a million different values makes no more of them than %s.',
  async (_, change, most) => {
    const { policies } = parseConfig({
      policies: [{ name: 'names', limit: 3, window: '1h', distinct: 'header:x-user', ...change }],
      use: [distinct(), overrides()],
    })
    const match: Match = {
      terms: policies[0]!,
      partitionKey: [],
      distinct: [['header:x-user', undefined]],
      cost: 1_000_000,
    }
    const [limit] = await limitsOf([match], undefined, {
      nameSubject: () => 'a-subject',
      nameValues,
    })
    expect(limit!.values).toHaveLength(most)
    expect(limit!.cost).toBe(1_000_000)
  },
)
