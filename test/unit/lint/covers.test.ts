/** Tests of which conditions cover others. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { MatchOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import type { Condition } from '../../../src/core/config/schema/condition.ts'
import { compileCondition } from '../../../src/core/program/condition.ts'
import { jwt } from '../../../src/features/jwt/index.ts'
import { covers } from '../../../src/lint/covers.ts'
import { disjoint } from '../../../src/lint/disjoint.ts'
import { isLong } from '../../support/long.ts'
import { match, request } from '../../support/random-conditions.ts'
import { viewOnCloudflare } from '../../support/view-on-cloudflare.ts'

const RUNS = Number(process.env.LINT_RUNS ?? (isLong ? 800 : 200))

const parsed = (matches: MatchOptions[]): Condition[] =>
  parseConfig({
    use: [jwt({ secret: 'JWT_SECRET' })],
    apiKeys: { known: 'API_KEYS' },
    policies: matches.map((match, n) => ({ name: `p${n}`, limit: 1, window: '1s', match })),
  }).policies.map(({ match }) => match)

/** Pairs in which the first condition covers the second, but not the reverse. */
const wider: [MatchOptions, MatchOptions][] = [
  [{}, { method: 'POST' }],
  [{ method: ['GET', 'POST'] }, { method: 'HEAD' }],
  [{ country: ['DE', 'XX'] }, { country: 'xx' }],
  [{ host: '*.a.test' }, { host: ['x.a.test', '*.y.a.test'] }],
  [{ path: '/*' }, {}],
  [{ path: '/a/*' }, { path: ['/a', '/a/b', '/a/:x/*'] }],
  [{ header: { 'x-a': true } }, { header: { 'X-A': true, 'x-b': true } }],
  [{ query: { a: true } }, { query: { a: true, b: 'x' } }],
  [{ asn: [64500, 64501] }, { asn: 64501 }],
  [{ ja4: ['t13d*', 'q13d*'] }, { ja4: 'T13D*' }],
  [{ verifiedBot: true }, { verifiedBot: 'AI Crawler' }],
  [{ verifiedBot: ['AI Crawler', 'AI Search'] }, { verifiedBot: 'ai search' }],
  [{ botScore: { below: 30 } }, { botScore: { atLeast: 2, below: 30 } }],
  [{ ip: ['10.0.0.0/8', '2001:db8::/32'] }, { ip: '10.0.0.0/8' }],
  [{ ip: '10.0.0.0/8' }, { ip: ['10.1.0.0/16', '10.2.3.4'] }],
  [{ header: { 'x-a': 'free*' } }, { header: { 'x-a': ['freedom', 'free'] } }],
  [{ not: { path: '/a' } }, { not: [{ path: '/b' }, { path: '/a' }] }],
]
/** Pairs in which neither condition covers the other. */
const beside: [MatchOptions, MatchOptions][] = [
  [{ method: 'GET' }, { path: '/a' }],
  [{ host: '*.a.test' }, { host: 'a.test' }],
  [{ path: '/a' }, { path: '/b/*' }],
  [{ header: { 'x-a': 'free*' } }, { header: { 'x-a': '*freedom' } }],
  [{ header: { 'x-a': '*dom' } }, { header: { 'x-a': 'dom*' } }],
  [{ header: { 'x-a': 'a' } }, { header: { 'x-b': 'a' } }],
  [{ ip: '::/0' }, { ip: '10.0.0.1' }],
  [{ ip: '10.1.0.0/16' }, { ip: '10.0.0.0/16' }],
  [{ query: { a: 'x' } }, { query: { A: 'x' } }],
  [{ asn: 64500 }, { asn: 64501 }],
  [{ verifiedBot: false }, { verifiedBot: true }],
  [{ verifiedBot: 'AI Crawler' }, { verifiedBot: 'AI Search' }],
  [{ verifiedBot: false }, { not: { verifiedBot: true } }],
  [{ botScore: { below: 30 } }, { botScore: { atLeast: 29 } }],
  [{ not: { path: '/a' } }, { path: '/:x' }],
]

test.each(wider)('The condition %j covers %j.', (one, other) => {
  const [a, b] = parsed([one, other])
  expect(covers(a!, b!)).toBe(true)
  if (one.path !== '/*') expect(covers(b!, a!)).toBe(false)
})

test.each(beside)('Neither of the conditions %j and %j covers the other.', (one, other) => {
  const [a, b] = parsed([one, other])
  expect(covers(a!, b!)).toBe(false)
  expect(covers(b!, a!)).toBe(false)
})

test('Conditions on credentials cover and exclude each other only if every request, also one with an invalid credential, agrees.', () => {
  const values = [undefined, true, false]
  const plain = values.flatMap((jwt) => values.map((apiKey) => ({ jwt, apiKey })))
  const all = parsed([...plain, ...plain.slice(1).map((not) => ({ not }))])
  const options = { caseSensitivePaths: false }
  const request = new Request('https://a.test/')
  const runtime = { env: {}, context: undefined, waitUntil: () => {} }
  const views = plain.map((known) => viewOnCloudflare(request, runtime, options).with(known))
  const found = { covered: 0, apart: 0 }
  for (const one of all) {
    for (const other of all) {
      const may = compileCondition(one, options)
      const certain = compileCondition(other, options, false)
      const covered = compileCondition(other, options)
      if (covers(one, other)) found.covered += 1
      if (disjoint(one, other)) found.apart += 1
      for (const view of views) {
        if (covers(one, other) && !covered(view)) expect(may(view)).toBe(undefined)
        if (disjoint(one, other) && !may(view)) expect(certain(view)).not.toBe(undefined)
      }
    }
  }
  expect(found.covered).toBeGreaterThan(all.length)
  expect(found.apart).toBeGreaterThan(all.length)
})

test.each(['jwt', 'apiKey'])('A condition with %s and one without it are apart.', (field) => {
  const [has, lacks, any] = parsed([{ [field]: true }, { [field]: false }, {}])
  expect([disjoint(has!, lacks!), disjoint(lacks!, has!)]).toEqual([true, true])
  expect([disjoint(has!, has!), disjoint(has!, any!), disjoint(any!, lacks!)]).not.toContain(true)
})

/** Pairs in which one condition often covers the other. Independent random pairs seldom do. */
const pair: fc.Arbitrary<[MatchOptions, MatchOptions]> = fc
  .tuple(match, match)
  .chain(([a, b]) =>
    fc.constantFrom<[MatchOptions, MatchOptions]>([a, b], [a, { ...a, ...b }], [a, { ...b, ...a }]),
  )

test('A request that matches a covered condition also matches the covering condition.', () => {
  let covered = 0
  const requests = fc.array(request, { minLength: 40, maxLength: 40 })
  const property = fc.property(pair, fc.boolean(), requests, (matches, exact, sent) => {
    const options = { caseSensitivePaths: exact }
    const [outer, inner] = parsed(matches) as [Condition, Condition]
    if (!covers(outer, inner)) return
    covered += 1
    const [outside, inside] = [outer, inner].map((one) => compileCondition(one, options))
    for (const { url, init, circumstances } of sent) {
      const runtime = { env: {}, context: undefined, waitUntil: () => {} }
      const seen = viewOnCloudflare(
        Object.assign(new Request(url, init), circumstances),
        runtime,
        options,
      )
      if (inside!(seen) === undefined)
        expect(outside!(seen), `${url} ${JSON.stringify(init)}`).toBe(undefined)
    }
  })
  fc.assert(property, { numRuns: RUNS })
  expect(covered).toBeGreaterThan(RUNS / 20)
})
