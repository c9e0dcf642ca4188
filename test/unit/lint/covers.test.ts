/** Containment of conditions. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { MatchOptions } from '../../../src/config/options.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import type { Condition } from '../../../src/config/schema/condition.ts'
import { covers } from '../../../src/lint/covers.ts'
import { compileCondition } from '../../../src/match/condition.ts'
import { viewOf } from '../../../src/request/view.ts'
import { match, request } from '../../support/random-conditions.ts'

const RUNS = Number(process.env.LINT_RUNS ?? 800)

const parsed = (matches: MatchOptions[]): Condition[] =>
  parseConfig({
    policies: matches.map((match, n) => ({ name: `p${n}`, limit: 1, window: '1s', match })),
  }).policies.map(({ match }) => match)

/** Pairs of which the first covers the second, and the second does not cover the first. */
const wider: [MatchOptions, MatchOptions][] = [
  [{}, { method: 'POST' }],
  [{ method: ['GET', 'POST'] }, { method: 'HEAD' }],
  [{ country: ['DE', 'XX'] }, { country: 'xx' }],
  [{ host: '*.a.test' }, { host: ['x.a.test', '*.y.a.test'] }],
  [{ path: '/*' }, {}],
  [{ path: '/a/*' }, { path: ['/a', '/a/b', '/a/:x/*'] }],
  [{ header: { 'x-a': true } }, { header: { 'X-A': true, 'x-b': true } }],
  [{ ip: ['10.0.0.0/8', '2001:db8::/32'] }, { ip: '10.0.0.0/8' }],
  [{ not: { path: '/a' } }, { not: [{ path: '/b' }, { path: '/a' }] }],
]
/** Pairs of which neither covers the other. */
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

test.each(wider)('%j covers %j.', (one, other) => {
  const [a, b] = parsed([one, other])
  expect(covers(a!, b!)).toBe(true)
  if (one.path !== '/*') expect(covers(b!, a!)).toBe(false)
})

test.each(beside)('Neither %j nor %j covers the other.', (one, other) => {
  const [a, b] = parsed([one, other])
  expect(covers(a!, b!)).toBe(false)
  expect(covers(b!, a!)).toBe(false)
})

/** Pairs that are often within each other, which random ones seldom are. */
const pair: fc.Arbitrary<[MatchOptions, MatchOptions]> = fc
  .tuple(match, match)
  .chain(([a, b]) =>
    fc.constantFrom<[MatchOptions, MatchOptions]>([a, b], [a, { ...a, ...b }], [a, { ...b, ...a }]),
  )

test('A request that meets a covered condition meets the covering one.', () => {
  let claimed = 0
  const requests = fc.array(request, { minLength: 40, maxLength: 40 })
  const property = fc.property(pair, fc.boolean(), requests, (matches, exact, sent) => {
    const options = { caseSensitivePaths: exact }
    const [outer, inner] = parsed(matches) as [Condition, Condition]
    if (!covers(outer, inner)) return
    claimed += 1
    const [outside, inside] = [outer, inner].map((one) => compileCondition(one, options))
    for (const { url, init, circumstances } of sent) {
      const runtime = { env: {}, context: undefined, waitUntil: () => {} }
      const seen = viewOf(Object.assign(new Request(url, init), circumstances), runtime, options)
      if (inside!(seen) === undefined)
        expect(outside!(seen), `${url} ${JSON.stringify(init)}`).toBe(undefined)
    }
  })
  fc.assert(property, { numRuns: RUNS })
  expect(claimed).toBeGreaterThan(RUNS / 20)
})
