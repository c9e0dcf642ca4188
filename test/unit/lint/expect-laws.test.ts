/** Laws of the expectations that the linter accepts and refuses. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { MatchOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import type { State } from '../../../src/core/connection/algorithms/index.ts'
import { compileCondition } from '../../../src/core/program/condition.ts'
import { disjoint } from '../../../src/lint/disjoint.ts'
import { findExample } from '../../../src/lint/expect/counterexample.ts'
import { expectationsOf } from '../../../src/lint/expect/options.ts'
import { createMatcher } from '../../support/create-matcher.ts'
import { expectedCase, keepsExpectation } from '../../support/expected.ts'
import { isLong } from '../../support/long.ts'
import { match, request } from '../../support/random-conditions.ts'
import { decide } from '../../support/random-limits.ts'
import { viewOnCloudflare } from '../../support/view-on-cloudflare.ts'

const RUNS = Number(process.env.LINT_RUNS ?? (isLong ? 2000 : 150))

/** A limiter in memory for the limits of requests. */
function createLimiter() {
  const states = new Map<string, State>()
  return (limits: Parameters<typeof decide>[0][], now: number) => {
    const rows = limits.map((limit) => decide(limit, now, states))
    if (rows.some(({ outcome }) => !outcome.allowed)) return false
    for (const { subject, outcome } of rows) if (outcome.state) states.set(subject, outcome.state)
    return true
  }
}

test('No schedule of requests exceeds an expectation that the linter accepts.', async () => {
  const reached: number[] = []
  await fc.assert(
    fc.asyncProperty(expectedCase, async (one) => {
      const used = await keepsExpectation(one, createLimiter())
      if (used !== undefined) reached.push(used)
    }),
    { numRuns: RUNS },
  )
  expect(reached.length).toBeGreaterThan(RUNS / 20)
  expect(reached.filter((used) => used === 1).length).toBeGreaterThan(0) // the bound is not larger than necessary
})

test('Two conditions that the linter keeps apart match no request together.', () => {
  let apart = 0
  const requests = fc.array(request, { minLength: 40, maxLength: 40 })
  const property = fc.property(match, match, fc.boolean(), requests, (one, other, exact, sent) => {
    const options = { caseSensitivePaths: exact }
    const policies = [one, other].map((match, n) => ({
      name: `p${n}`,
      limit: 1,
      window: 1000,
      match,
    }))
    const [a, b] = parseConfig({ policies }).policies.map(({ match }) => match)
    if (!disjoint(a!, b!)) return
    apart += 1
    const may = compileCondition(a!, options)
    const certain = compileCondition(b!, options, false)
    const runtime = { env: {}, context: undefined, waitUntil: () => {} }
    for (const { url, init, circumstances } of sent) {
      const made = Object.assign(new Request(url, init), circumstances)
      const seen = viewOnCloudflare(made, runtime, options)
      if (may(seen) === undefined) {
        expect(certain(seen), `${url} ${JSON.stringify({ init, one, other })}`).toBeDefined()
      }
    }
  })
  fc.assert(property, { numRuns: RUNS * 2 })
  expect(apart).toBeGreaterThan(RUNS / 20)
})

const disjointPairs: [MatchOptions, MatchOptions][] = [
  [{ method: 'GET' }, { method: ['POST', 'PUT'] }],
  [{ ip: '10.0.0.0/8' }, { ip: ['11.0.0.0/8', '2001:db8::/32'] }],
  [{ host: 'a.test' }, { host: '*.a.test' }],
  [{ path: '/a' }, { path: ['/b', '/a/:x', '/'] }],
  [{ path: '/a/*' }, { path: '/b/*' }],
  [{ header: { 'x-a': 'free' } }, { header: { 'X-A': ['pro', 'max'] } }],
  [{ verifiedBot: true }, { verifiedBot: false }],
  [{ botScore: { below: 30 } }, { botScore: { atLeast: 30 } }],
  [{ not: { ip: '10.0.0.0/8' } }, { ip: '10.1.0.0/16' }],
]
const meetingPairs: [MatchOptions, MatchOptions][] = [
  [{ method: 'GET' }, { path: '/a' }],
  [{ ip: '10.0.0.0/8' }, { ip: '10.1.0.0/16' }],
  [{ host: '*.a.test' }, { host: 'x.a.test' }],
  [{ path: '/a' }, { path: ['/:x'] }],
  [{ path: '/A/%62' }, { path: '/a/b' }],
  [{ path: '/a' }, { path: '/a/*' }],
  [{ header: { 'x-a': 'free' } }, { header: { 'x-a': 'free, pro' } }],
  [{ header: { 'x-a': 'free' } }, { header: { 'x-a': 'f*' } }],
  [{ botScore: { below: 30 } }, { botScore: { atLeast: 29 } }],
  [{ not: { ip: '10.1.0.0/16' } }, { ip: '10.0.0.0/8' }],
]
const areDisjoint = (pair: [MatchOptions, MatchOptions]) => {
  const policies = pair.map((match, n) => ({ name: `p${n}`, limit: 1, window: 1000, match }))
  const [one, other] = parseConfig({ policies }).policies.map(({ match }) => match)
  return [disjoint(one!, other!), disjoint(other!, one!)]
}

test.each(disjointPairs)('No request matches both %j and %j.', (...pair) => {
  expect(areDisjoint(pair)).toEqual([true, true])
})

test.each(meetingPairs)('A request may match both %j and %j.', (...pair) => {
  expect(areDisjoint(pair)).toEqual([false, false])
})

test('No policy bounds the request of a counterexample as the expectation demands.', async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(expectedCase, fc.nat(3), async ({ options }, atMost) => {
      const config = parseConfig(options)
      const [expectation] = expectationsOf({ expect: { ...options.expect, atMost } }).output!
      const example = findExample(expectation!, config)
      if (!example) return
      count += 1
      const { method, host, path, header, query, ip, country, asn, bot, score, ja4 } =
        example.sample
      const { denied, policies } = await createMatcher(options)(
        `https://${host}${path}?${new URLSearchParams(query)}`,
        { method, headers: { ...header, 'cf-connecting-ip': ip } },
        {
          cf: {
            ...{ country, asn },
            botManagement: { ja4, score, ...(bot !== undefined && { verifiedBot: bot !== '' }) },
            ...(bot && { verifiedBotCategory: bot }),
          },
        },
      )
      expect(denied).toBeUndefined()
      for (const { terms } of policies) {
        const bound = example.bounds.find((one) => one.policy.name === terms.name)!
        if (!bound.gap) expect(bound.requests).toBeGreaterThan(atMost)
        else expect(['shadow', 'key', 'free']).toContain(bound.gap.why)
      }
    }),
    { numRuns: RUNS },
  )
  expect(count).toBeGreaterThan(RUNS / 10)
})
