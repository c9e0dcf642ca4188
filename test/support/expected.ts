/** Random expectations, and the check that no schedule of requests exceeds what the linter accepts. */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { ConfigOptions, ExpectOptions, PolicyOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { Match } from '../../src/core/program/match.ts'
import { checkExpectations } from '../../src/lint/expect/expectations.ts'
import { createMatcher } from './create-matcher.ts'
import { match, request } from './random-conditions.ts'
import { config, key } from './random-limits.ts'

/** A configuration with one expectation, often about the requests and the key of one of its policies. */
const expecting: fc.Arbitrary<ConfigOptions & { expect: ExpectOptions }> = config.chain((options) =>
  fc
    .record({
      about: fc.constantFrom(...options.policies),
      request: match,
      isAbout: fc.constantFrom(true, true, true, false),
      per: fc.oneof(
        { weight: 3, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: key },
      ),
      in: fc.constantFrom(1, 500, 1000, 2000, 3500, 8000),
    })
    .map(({ about, request, isAbout, per = about.key, ...rest }) => ({
      ...options,
      expect: {
        ...rest,
        request: isAbout ? (about.match ?? {}) : request,
        per: per as ExpectOptions['per'],
        atMost: 1e12,
      },
    })),
)

/** A configuration with an expectation, and a schedule: which of some requests is sent, after which pause in ms. */
export const expectedCase = fc.record({
  options: expecting,
  sent: fc.array(request, { minLength: 20, maxLength: 20 }),
  kinds: fc.integer({ min: 1, max: 4 }),
  steps: fc.array(
    fc.tuple(
      fc.nat(),
      fc.oneof(
        { weight: 6, arbitrary: fc.constant(0) },
        { weight: 3, arbitrary: fc.constantFrom(1, 10, 100, 250) },
        { weight: 2, arbitrary: fc.constantFrom(999, 1000, 1999, 2999, 3999) },
      ),
    ),
    { minLength: 120, maxLength: 120 },
  ),
})

/** Decides a request whose enforced limits these are. */
export type Decide = (limits: Match[], now: number) => Promise<boolean> | boolean

/**
 * Sends a schedule, and checks the expectation with the smallest number that the linter accepts.
 * @returns the used part of that number; undefined if the linter accepts none, or no request is meant
 */
export async function keepsExpectation(
  { options, sent, kinds, steps }: typeof expectedCase extends fc.Arbitrary<infer T> ? T : never,
  decide: Decide,
): Promise<number | undefined> {
  const [checked] = checkExpectations({ config: parseConfig(options), written: options })
  if (!checked?.held) return undefined
  const { requests: bound, expectation } = checked.held
  const clients = createMatcher({
    policies: [{ ...CLIENTS, match: options.expect.request!, key: options.expect.per! }],
    caseSensitivePaths: options.caseSensitivePaths,
  } as ConfigOptions)
  const matches = createMatcher(options)
  const meant = []
  for (const { url, init, circumstances } of sent) {
    const { policies } = await clients(url, init, circumstances)
    const names = policies.map(({ partitionKey }) => JSON.stringify(partitionKey))
    if (names.length > 0) meant.push({ names, matched: await matches(url, init, circumstances) })
  }
  const some = meant.slice(0, kinds)
  if (some.length === 0) return undefined
  const passed = new Map<string, number[]>()
  let [now, most] = [1_789_000_000_000, 0]
  for (const [which, pause] of steps) {
    now += pause
    const { names, matched } = some[which % some.length]!
    if (matched.denied) continue
    const limits = matched.policies
    const enforced = limits.filter(({ terms }) => terms.mode === 'enforce')
    if (enforced.length > 0 && !(await decide(enforced, now))) continue
    for (const name of names) {
      const times = [...(passed.get(name) ?? []), now].filter(
        (time) => time > now - expectation.inMs,
      )
      passed.set(name, times)
      most = Math.max(most, times.length)
      expect(times.length, JSON.stringify({ options, now, times })).toBeLessThanOrEqual(bound)
    }
  }
  return bound === 0 ? 0 : most / bound
}

const CLIENTS: PolicyOptions = { name: 'clients', limit: 1, window: '1s' }
