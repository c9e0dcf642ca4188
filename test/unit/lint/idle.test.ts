/** Policies without effect. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { State } from '../../../src/core/connection/algorithms/index.ts'
import { lint } from '../../../src/lint/lint.ts'
import { createMatcher } from '../../support/create-matcher.ts'
import { found, one, several, testFindings } from '../../support/lint.ts'
import { isLong } from '../../support/long.ts'
import { request } from '../../support/random-conditions.ts'
import { config, decide } from '../../support/random-limits.ts'

const RUNS = Number(process.env.LINT_RUNS ?? (isLong ? 2000 : 300))
const api = { match: { path: '/api/*' } } as const
const users = { match: { path: '/api/users' } } as const
const office = { name: 'office', ip: '198.51.100.0/24' }
const inOffice = { match: { ip: '198.51.100.0/28' } } as const

testFindings({
  'An entry of allow exempts all requests of a policy.': [
    'never-applies policies[0].match',
    one(inOffice, { allow: office }),
    one(inOffice, { allow: { ip: '198.51.100.128/25' } }),
  ],
  'An entry of allow names the policy whose requests it exempts.': [
    'never-applies policies[0].match',
    one(users, { allow: { path: '/api/*', policies: 'a' } }),
    { ...several(users, { key: 'asn' }), allow: { path: '/api/*', policies: 'b' } },
  ],
  'An entry of deny refuses all requests of a policy.': [
    'never-applies policies[0].match',
    one(users, { deny: { path: '/api/*' } }),
    one(api, { deny: { path: '/api/users' } }),
  ],
  'A policy has a smaller limit than another for the same requests.': [
    'never-refuses policies[1]',
    several({ limit: 50 }, {}),
    several({ limit: 50 }, { key: 'asn' }),
  ],
  'The stricter policy comes last.': [
    'never-refuses policies[0]',
    several({}, { limit: 50 }),
    several({}, { limit: 50, ...api }),
  ],
  'Of two equal policies only the second has no effect.': [
    'never-refuses policies[1]',
    several({}, {}),
    several({}, { mode: 'shadow' }),
  ],
  'A short window admits less than a long one.': [
    'never-refuses policies[1]',
    several({ limit: 10, window: '10s' }, { ...users, limit: 80 }),
    several({ limit: 10, window: '10s' }, { ...users, limit: 79 }),
  ],
  'A quota of all clients is below that of one.': [
    'never-refuses policies[1]',
    several({ ...api, key: 'global', limit: 50 }, { ...api, limit: 200 }),
    several({ ...api, limit: 50 }, { ...api, key: 'global', limit: 200 }),
  ],
  'A fixed window opens with the same request.': [
    'never-refuses policies[1]',
    several({ limit: 99, algorithm: 'fixed-window' }, { algorithm: 'fixed-window' }),
    several({ limit: 99, algorithm: 'fixed-window' }, { ...api, algorithm: 'fixed-window' }),
  ],
  'A bucket is smaller and slower than another.': [
    'never-refuses policies[1]',
    several({ limit: 50 }, { algorithm: 'token-bucket', burst: 50 }),
    several({ limit: 50 }, { algorithm: 'token-bucket', burst: 49 }),
  ],
  'The stricter policy costs as much.': [
    'never-refuses policies[1]',
    several({ limit: 50, cost: 2 }, { cost: 2 }),
    several({ limit: 50 }, { cost: [{ path: '/a', cost: 3 }] }),
  ],
  'Both policies skip requests without the key.': [
    'never-refuses policies[1]',
    several({ limit: 50, key: 'asn', onMissingKey: 'skip' }, { key: 'asn', onMissingKey: 'skip' }),
    several({ limit: 50, key: 'asn', onMissingKey: 'skip' }, { key: 'asn' }),
  ],
  'Without Redis both count in the isolate.': [
    'never-refuses policies[1]',
    several({ limit: 50 }, {}),
    several({ limit: 50 }, { onStoreError: 'deny' }),
  ],
  'An entry of allow exempts from both.': [
    'never-refuses policies[1]',
    { ...several({ limit: 50 }, {}), allow: office },
    { ...several({ limit: 50 }, {}), allow: { ...office, policies: 'a' } },
  ],
  'The smallest plan is above the other limit.': [
    'never-refuses policies[1]',
    several({ limit: 50 }, { plan: 'country', limits: { DE: 50 } }),
    several({ limit: 50 }, { plan: 'country', limits: { DE: 49 } }),
  ],
})

test('A policy without effect can be accepted.', () => {
  expect(found(several({ limit: 50 }, { accept: 'never-refuses' }))).toEqual([])
})

test('No schedule of requests makes a policy refuse of which the linter says that it never does.', async () => {
  let [idlePolicies, refusals] = [0, 0]
  const requests = fc.array(request, { minLength: 1, maxLength: 6 })
  const schedule = fc.array(
    fc.tuple(fc.nat(), fc.constantFrom(0, 0, 0, 0, 1, 10, 250, 999, 1000, 1999, 3999)),
    { minLength: 150, maxLength: 150 },
  )
  await fc.assert(
    fc.asyncProperty(config, requests, schedule, async (options, sent, steps) => {
      const idle = lint(options).flatMap(({ code, path }) =>
        code === 'never-refuses' || code === 'never-applies'
          ? [[code, Number(/\d+/.exec(path))]]
          : [],
      )
      if (idle.length === 0) return
      idlePolicies += idle.length
      const matches = createMatcher(options)
      const described = await Promise.all(
        sent.map(({ url, init, circumstances }) => matches(url, init, circumstances)),
      )
      const states = new Map<string, State>()
      let now = 1_789_000_000_123
      for (const [which, pause] of steps) {
        now += pause
        const { denied, policies } = described[which % sent.length]!
        if (denied) continue
        const rows = policies.map((row) => ({ ...row, ...decide(row, now, states) }))
        const enforced = rows.filter(({ terms }) => terms.mode === 'enforce')
        const refusing = enforced.filter(({ outcome }) => !outcome.allowed)
        for (const [code, index] of idle) {
          const isOwn = ({ terms }: (typeof rows)[number]) => terms.name === `p${index}`
          if (code === 'never-refuses' && refusing.some(isOwn)) {
            expect(refusing.length, JSON.stringify(options)).toBeGreaterThan(1)
          }
        }
        refusals += refusing.length
        if (refusing.length > 0) continue
        for (const { subject, outcome } of enforced) {
          if (outcome.state) states.set(subject, outcome.state)
        }
      }
    }),
    { numRuns: RUNS },
  )
  expect(idlePolicies).toBeGreaterThan(RUNS / 20)
  expect(refusals).toBeGreaterThan(RUNS)
})
