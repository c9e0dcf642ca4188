import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileCondition } from '../../src/condition.ts'
import {
  apart,
  coveredBy,
  covers,
  isImpossible,
  type PathOptions,
} from '../../src/lint/conditions.ts'
import type { Match } from '../../src/options.ts'
import { parseConfig } from '../../src/policy.ts'
import type { Condition } from '../../src/schema/condition.ts'
import { see } from '../../src/seen.ts'
import { match, request } from './small-world.ts'

const RUNS = Number(process.env.LINT_RUNS ?? 800)
const requests = fc.array(request, { minLength: 40, maxLength: 40 })
const several = fc.array(match, { minLength: 1, maxLength: 3 })

type Drawn = [one: Match, others: Match[]]

/** One within the other now and then: what random pairs seldom are. */
const pair: fc.Arbitrary<Drawn> = fc
  .tuple(match, match)
  .chain(([a, b]) =>
    fc.constantFrom<Drawn>(
      [a, [b]],
      [{ ...a, ...b }, [a]],
      [{ ...b, ...a }, [a]],
      [{ ...b, ...a }, [{ not: b }]],
    ),
  )

const parsed = (matches: Match[]): Condition[] =>
  parseConfig({
    policies: matches.map((match, n) => ({ name: `p${n}`, limit: 1, window: '1s', match })),
  }).policies.map(({ match }) => match)

/**
 * Runs a law over requests wherever a claim is made of conditions; says how often one was.
 * @param law is told whether a request meets the one, and whether it meets each of the others
 */
function hold(
  drawn: fc.Arbitrary<Drawn>,
  claim: (one: Condition, others: Condition[], options: PathOptions) => boolean,
  law: (one: boolean, others: boolean[]) => boolean,
): number {
  let claimed = 0
  const property = fc.property(drawn, fc.boolean(), requests, (matches, exact, sent) => {
    const options = { caseSensitivePaths: exact }
    const [one, ...others] = parsed(matches.flat())
    if (!claim(one!, others, options)) return
    claimed += 1
    const tests = [one!, ...others].map((condition) => compileCondition(condition, options))
    for (const { url, init, circumstances } of sent) {
      const surroundings = { env: {}, context: undefined, waitUntil: () => {} }
      const request = Object.assign(new Request(url, init), circumstances)
      const seen = see(request, surroundings, options)
      const [meets, ...meetsOthers] = tests.map((mismatch) => mismatch(seen) === undefined)
      expect(law(meets!, meetsOthers), `${url} ${JSON.stringify(init)}`).toBe(true)
    }
  })
  fc.assert(property, { numRuns: RUNS })
  return claimed
}

test('what is covered is met by no request that the other does not meet', () => {
  const count = hold(
    pair,
    (one, [other], options) => covers(other!, one, options),
    (one, [other]) => !one || other!,
  )
  expect(count).toBeGreaterThan(RUNS / 20)
})

test('no request meets two that are apart', () => {
  const count = hold(
    pair,
    (one, [other], options) => apart(one, other!, options),
    (one, [other]) => !(one && other),
  )
  expect(count).toBeGreaterThan(RUNS / 20)
})

test('what several cover together has no request beyond them', () => {
  const count = hold(
    fc.tuple(match, several),
    coveredBy,
    (one, others) => !one || others.includes(true),
  )
  expect(count).toBeGreaterThan(RUNS / 50)
})

test('no request meets what is impossible', () => {
  const carved = fc.tuple(match, several).map(([one, not]): Drawn => [{ ...one, not }, []])
  const count = hold(
    carved,
    (one, _, options) => isImpossible(one, options),
    (one) => !one,
  )
  expect(count).toBeGreaterThan(RUNS / 50)
})
