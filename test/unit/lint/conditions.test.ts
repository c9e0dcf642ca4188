import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { MatchOptions } from '../../../src/config/options.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import type { Condition } from '../../../src/config/schema/condition.ts'
import {
  apart,
  coveredBy,
  covers,
  isImpossible,
  type PathOptions,
} from '../../../src/lint/conditions.ts'
import { compileCondition } from '../../../src/match/condition.ts'
import { viewOf } from '../../../src/request/view.ts'
import { match, request } from './small-world.ts'

const RUNS = Number(process.env.LINT_RUNS ?? 800)
const requests = fc.array(request, { minLength: 40, maxLength: 40 })
const several = fc.array(match, { minLength: 1, maxLength: 3 })

type Drawn = [one: MatchOptions, others: MatchOptions[]]

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

const parsed = (matches: MatchOptions[]): Condition[] =>
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
      const runtime = { env: {}, context: undefined, waitUntil: () => {} }
      const request = Object.assign(new Request(url, init), circumstances)
      const seen = viewOf(request, runtime, options)
      const [meets, ...meetsOthers] = tests.map((mismatch) => mismatch(seen) === undefined)
      expect(law(meets!, meetsOthers), `${url} ${JSON.stringify(init)}`).toBe(true)
    }
  })
  fc.assert(property, { numRuns: RUNS })
  return claimed
}

/** Pairs of which the first covers the second, and not the other way round. */
const wider: [MatchOptions, MatchOptions][] = [
  [{}, { method: 'POST' }],
  [{ method: ['GET', 'POST'] }, { method: 'HEAD' }],
  [{ country: ['DE', 'XX'] }, { country: 'xx' }],
  [{ host: '*.a.test' }, { host: ['x.a.test', '*.y.a.test'] }],
  [{ path: '/*' }, {}],
  [{ path: '/a/*' }, { path: ['/a', '/A/b', '/a/:x/*'] }],
  [{ path: '/:x/b' }, { path: '/a/b' }],
  [{ path: '/' }, { path: '/a/../b' }],
  [{ header: { 'x-a': true } }, { header: { 'X-A': 'free', 'x-b': true } }],
  [{ header: { 'x-a': 'free*' } }, { header: { 'x-a': ['FREE', 'freedom*'] } }],
  [{ header: { 'x-a': '*dom' } }, { header: { 'x-a': ['dom', '*freedom'] } }],
  [{ header: { 'x-a': '*ee*' } }, { header: { 'x-a': ['*free*', 'free*', '*seed', 'ee'] } }],
  [
    { ip: ['10.0.0.0/8', '2001:db8::/32'] },
    { ip: ['10.1.2.3', '::ffff:10.1.0.0/112', '2001:db8::7'] },
  ],
  [{ not: { path: '/a' } }, { path: '/b' }],
  [{ not: { method: 'GET', path: '/a' } }, { not: { path: '/a/*' } }],
  [{ path: '/*', not: { not: { path: '/a/*' } } }, { path: '/a/b' }],
]
/** Of which neither does. */
const beside: [MatchOptions, MatchOptions][] = [
  [{ method: 'GET' }, { path: '/a' }],
  [{ host: '*.a.test' }, { host: 'a.test' }],
  [{ path: '/a' }, { path: '/b/*' }],
  [{ header: { 'x-a': 'free*' } }, { header: { 'x-a': '*freedom' } }],
  [{ header: { 'x-a': '*dom' } }, { header: { 'x-a': 'dom*' } }],
  [{ header: { 'x-a': 'a' } }, { header: { 'x-b': 'a' } }],
  [{ ip: '::/0' }, { ip: '10.0.0.1' }],
  [{ not: { path: '/a' } }, { path: '/:x' }],
]

test.each(wider)('%j covers %j', (one, other) => {
  const [a, b] = parsed([one, other])
  expect(covers(a!, b!, { caseSensitivePaths: false })).toBe(true)
  if (one.path !== '/*') expect(covers(b!, a!, { caseSensitivePaths: false })).toBe(false)
})

test.each(beside)('neither of %j and %j covers the other', (one, other) => {
  const [a, b] = parsed([one, other])
  expect(covers(a!, b!, { caseSensitivePaths: false })).toBe(false)
  expect(covers(b!, a!, { caseSensitivePaths: false })).toBe(false)
})

test.each<[MatchOptions, MatchOptions]>([
  [{ method: 'GET' }, { method: 'POST' }],
  [{ host: 'a.test' }, { host: '*.a.test' }],
  [{ path: '/a/b' }, { path: ['/:x', '/b/*', '/a/c/*'] }],
  [{ ip: '10.0.0.0/25' }, { ip: ['10.0.0.128/25', '::/0'] }],
  [{ not: { path: '/a/*' } }, { path: '/a/b' }],
])('%j and %j are apart', (one, other) => {
  const [a, b] = parsed([one, other])
  expect(apart(a!, b!, { caseSensitivePaths: false })).toBe(true)
  expect(apart(b!, a!, { caseSensitivePaths: false })).toBe(true)
})

test.each<[MatchOptions, MatchOptions]>([
  [{ host: '*.test' }, { host: 'x.test' }],
  [{ path: '/a/*' }, { path: '/a' }],
  [{ path: '/:x/b' }, { path: '/a/:y' }],
  [{ ip: '10.0.0.0/24' }, { ip: '10.0.0.128/25' }],
  [{ header: { 'x-a': 'a' } }, { header: { 'x-b': 'b' } }],
])('%j and %j are not', (one, other) => {
  const [a, b] = parsed([one, other])
  expect(apart(a!, b!, { caseSensitivePaths: false })).toBe(false)
  expect(apart(b!, a!, { caseSensitivePaths: false })).toBe(false)
})

test('paths of another letter case are others where the configuration says so', () => {
  const [a, b] = parsed([{ path: '/a' }, { path: '/A' }])
  for (const caseSensitivePaths of [false, true]) {
    expect(covers(a!, b!, { caseSensitivePaths })).toBe(!caseSensitivePaths)
    expect(apart(a!, b!, { caseSensitivePaths })).toBe(caseSensitivePaths)
  }
})

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
