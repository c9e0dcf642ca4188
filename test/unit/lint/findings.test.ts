/** What is found in random configurations, held against what the Worker makes of random requests. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Finding } from '../../../src/config/findings.ts'
import type { ConfigOptions, PolicyOptions } from '../../../src/config/options.ts'
import { mayBeEarly } from '../../../src/gateway/speculative.ts'
import { lint } from '../../../src/lint/lint.ts'
import { type Match, isMatch } from '../../../src/match/match.ts'
import { readings } from '../../../src/request/path.ts'
import { algorithms, type State } from '../../../src/store/local/algorithms/index.ts'
import { describer } from '../../support/describe.ts'
import { match, request } from './small-world.ts'

const RUNS = Number(process.env.LINT_RUNS ?? 150)
const requests = fc.array(request, { minLength: 30, maxLength: 30 })
const often = <T>(usual: T, ...others: T[]) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  )

const key = often<PolicyOptions['key'] & {}>(
  ['ip'],
  ['country'],
  ['header:x-a'],
  ['ip', 'header:x-a'],
  ['path'],
)
const cost = fc.oneof(
  { weight: 4, arbitrary: fc.constant(1) },
  fc.array(
    fc.tuple(match, fc.constantFrom(0, 1, 2)).map(([match, cost]) => ({ ...match, cost })),
    { minLength: 1, maxLength: 3 },
  ),
)
const policy = fc
  .record({
    algorithm: often<PolicyOptions['algorithm'] & {}>(
      'sliding-window',
      'fixed-window',
      'sliding-log',
      'token-bucket',
      'gcra',
    ),
    limit: fc.constantFrom(2, 3, 4, 6),
    window: fc.constantFrom(1000, 2000, 3000, 4000),
    key,
    onMissingKey: often<PolicyOptions['onMissingKey'] & {}>('share', 'skip', 'refuse', {
      key: ['country'],
    }),
    match: fc.oneof(fc.constant({}), match),
    cost,
    mode: often('enforce' as const, 'shadow'),
    check: often('parallel' as const, 'before'),
    deadline: fc.constantFrom('100ms' as const, '200ms' as const, '300ms' as const),
    onStoreError: often('allow' as const, 'local', 'deny'),
    align: fc.constantFrom('clock' as const, 'first-request' as const),
  })
  .map(({ align, ...policy }) => ({
    ...policy,
    ...(policy.algorithm === 'fixed-window' && { align }),
  }))
const entry = fc.record({ match, policies: fc.option(fc.subarray(['p0', 'p1'], { minLength: 1 })) })

const config = fc
  .record({
    policies: fc.array(policy, { minLength: 2, maxLength: 4 }),
    allow: fc.array(entry, { maxLength: 2 }),
    deny: fc.array(match, { maxLength: 2 }),
    caseSensitivePaths: fc.boolean(),
  })
  .map(
    ({ policies, allow, ...rest }): ConfigOptions => ({
      ...rest,
      policies: policies.map((policy, n) => ({ ...policy, name: `p${n}` })) as PolicyOptions[],
      allow: allow.map(({ match, policies }) => ({ ...match, ...(policies && { policies }) })),
    }),
  )

type Sent = typeof request extends fc.Arbitrary<infer R> ? R : never

const ask = (options: ConfigOptions, sent: Sent[]) => {
  const describe = describer(options)
  return Promise.all(sent.map(({ url, init, circumstances }) => describe(url, init, circumstances)))
}

/** How often each code was found. */
const found = new Map<string, number>()
const tally = (findings: Finding[]) => {
  for (const { code } of findings) found.set(code, (found.get(code) ?? 0) + 1)
}

/** Runs a law over random configurations, with what is found in each. */
const law = (check: (options: ConfigOptions, findings: Finding[], sent: Sent[]) => Promise<void>) =>
  fc.assert(
    fc.asyncProperty(config, requests, async (options, sent) => {
      const findings = lint(options)
      expect(findings.filter(({ code }) => code === 'invalid')).toEqual([])
      tally(findings)
      await check(options, findings, sent)
    }),
    { numRuns: RUNS },
  )

test('no request is counted by a policy that is found unreachable, skipped or refused', async () => {
  await law(async (options, findings, sent) => {
    const never = findings
      .filter(({ code }) => /^(unreachable-policy|skipped-by-allow|refused-by-deny)$/.test(code))
      .map(({ path }) => `p${/\d+/.exec(path)}`)
    // An entry of allow takes a request by all readings of its path, a policy by any.
    const plain = sent.filter(({ url }) => readings(new URL(url).pathname).length === 1)
    const skips = findings.some(({ code }) => code === 'skipped-by-allow')
    const descriptions = await ask(options, skips ? plain : sent)
    const counted = descriptions.flatMap(({ policies }) => policies.filter(isMatch))
    expect(counted.filter(({ policy }) => never.includes(policy.name))).toEqual([])
  })
  const counts = ['unreachable-policy', 'skipped-by-allow', 'refused-by-deny'].map(
    (code) => found.get(code) ?? 0,
  )
  expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThan(RUNS / 10)
})

test('what takes all takes all', async () => {
  await law(async (options, findings, sent) => {
    const all = findings.filter(
      ({ code, message }) =>
        code === 'list-takes-all' && /: every request (is|skips) /.test(message),
    )
    for (const { denied, policies } of all.length > 0 ? await ask(options, sent) : []) {
      expect(denied || policies.every((one) => !isMatch(one))).toBeTruthy()
    }
  })
})

/** What of a decision a setting could change. */
const effects = (options: ConfigOptions, sent: Sent[]) =>
  ask(options, sent).then((descriptions) =>
    descriptions.map(({ denied, policies }, index) => {
      if (denied) return 'denied'
      const { url, init } = sent[index]!
      const met = policies.filter(isMatch)
      const enforced = met.filter(({ policy }) => policy.mode === 'enforce')
      const fallback = enforced.map(({ policy }) => policy.onStoreError)
      return {
        met: met.map(({ policy, partitionKey, cost }) => [policy.name, partitionKey, cost]),
        deadline: Math.min(...enforced.map(({ policy }) => policy.deadlineMs)),
        fallback: ['deny', 'local'].find((word) => fallback.includes(word as 'deny')) ?? 'allow',
        early: mayBeEarly(
          new Request(url, init),
          met.map(({ policy }) => policy),
        ),
      }
    }),
  )

/** The same without what stands at a path such as `policies[0].match.not[1]`; `undefined` where the rest would mean something else. */
function without(options: ConfigOptions, path: string): ConfigOptions | undefined {
  const copy = structuredClone(options)
  const keys = path.split(/[.[\]]+/).filter((part) => part !== '')
  const [last, field] = [keys.pop()!, keys.at(-1)]
  let holder = copy as unknown as Record<string, unknown>
  let around = holder
  for (const key of keys) [around, holder] = [holder, holder[key] as typeof holder]
  if (!Array.isArray(holder)) delete holder[last]
  else {
    holder.splice(Number(last), 1)
    if (field === 'not' && holder.length === 0) delete around.not
    if (field === 'policies' && holder.length === 0) return undefined
  }
  return copy
}

test('what is found to be unused changes nothing when it is gone', async () => {
  const kinds = new Set<string>()
  await law(async (options, findings, sent) => {
    const before = await effects(options, sent)
    for (const { code, path } of findings) {
      const rest = code === 'unused-setting' ? without(options, path) : undefined
      if (!rest) continue
      kinds.add(path.replace(/\d+/g, 'n'))
      expect(await effects(rest, sent), path).toEqual(before)
    }
  })
  expect(kinds.size).toBeGreaterThan(5) // entries, nots, paths, costs, deadlines …
})

test('what is found redundant never is the one to refuse', async () => {
  const before = found.get('redundant-policy') ?? 0
  await fc.assert(
    fc.asyncProperty(
      config,
      fc.array(fc.tuple(request, fc.constantFrom(0, 1, 10, 200, 500, 999, 1000, 1700)), {
        minLength: 120,
        maxLength: 120,
      }),
      async (options, schedule) => {
        const findings = lint(options)
        tally(findings)
        const redundant = findings
          .filter(({ code }) => code === 'redundant-policy')
          .map(({ path }) => `p${/\d+/.exec(path)}`)
        if (redundant.length === 0) return
        const descriptions = await ask(
          options,
          schedule.map(([sent]) => sent),
        )
        const states = new Map<string, State>()
        let now = 1_789_000_000_123
        descriptions.forEach(({ denied, policies }, n) => {
          now += schedule[n]![1]
          if (denied) return
          const rows = policies.filter(isMatch).map((row) => ({ ...row, ...fare(row, now, states) }))
          const refusing = rows.filter(
            ({ outcome, policy }) => !outcome.allowed && policy.mode === 'enforce',
          )
          for (const { policy, outcome } of rows) {
            if (!outcome.allowed && redundant.includes(policy.name)) {
              expect(
                refusing
                  .filter((row) => !redundant.includes(row.policy.name))
                  .map(({ policy }) => policy.name),
              ).not.toEqual([])
            }
          }
          if (refusing.length > 0) return
          for (const { subject, outcome } of rows)
            if (outcome.state) states.set(subject, outcome.state)
        })
      },
    ),
    { numRuns: RUNS * 3 },
  )
  expect(found.get('redundant-policy')! - before).toBeGreaterThan(3)
})

test('a shield that is as wide as the finding says lets everybody pass whom all policies let pass', async () => {
  const PERIOD_MS = 10_000
  const reached: number[] = [] // of its limit, at most, in each run
  const shieldKey = often<PolicyOptions['key'] & {}>(['ip'], ['country'], ['ip', 'header:x-a'])
  // Much is to pass: so few different requests, and hardly a pause.
  const requests = fc.tuple(
    fc.array(request, { minLength: 2, maxLength: 4 }),
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(0, 1, 10, 100, 200)), {
      minLength: 400,
      maxLength: 400,
    }),
  )
  await fc.assert(
    fc.asyncProperty(config, shieldKey, requests, async (options, key, [kinds, schedule]) => {
      const withShield = (limit: number): ConfigOptions => ({
        ...options,
        shield: { binding: 'SHIELD', period: '10s', limit, key },
      })
      const tight = lint(withShield(1)).find(({ code }) => code === 'tight-shield')
      if (tight?.path !== 'shield.limit') return
      const limit = Number(/Raise its limit to (\d+)/.exec(tight.hint)![1])
      const found = lint(withShield(limit)).map(({ code }) => code)
      expect(found).not.toContain('tight-shield')
      const descriptions = await ask(withShield(limit), kinds)
      const states = new Map<string, State>()
      const passed = new Map<string, number[]>()
      let [now, most] = [1_789_000_000_123, 0]
      for (const [which, pause] of schedule) {
        now += pause
        const { denied, policies, shield } = descriptions[which % kinds.length]!
        if (denied) continue
        const rows = policies.filter(isMatch).map((row) => ({ ...row, ...fare(row, now, states) }))
        const enforced = rows.filter(({ policy }) => policy.mode === 'enforce')
        if (enforced.some(({ outcome }) => !outcome.allowed)) continue
        for (const { subject, outcome } of rows)
          if (outcome.state) states.set(subject, outcome.state)
        if (!shield || enforced.every(({ cost }) => cost === 0)) continue
        const whom = JSON.stringify(shield)
        const times = [...(passed.get(whom) ?? []), now].filter((at) => at > now - PERIOD_MS)
        passed.set(whom, times)
        most = Math.max(most, times.length)
        expect(times.length).toBeLessThanOrEqual(limit)
      }
      reached.push(most / limit)
    }),
    { numRuns: RUNS * 2 },
  )
  expect(reached.length).toBeGreaterThan(RUNS / 10)
  expect(Math.max(...reached)).toBeGreaterThan(0.8) // it is not wider than need be, either
})

function fare({ policy, partitionKey, cost }: Match, now: number, states: Map<string, State>) {
  const subject = JSON.stringify([policy.tag, partitionKey])
  const { windowMs: window, ...terms } = policy
  const algorithm = policy.algorithm as keyof typeof algorithms // no concurrency is drawn
  return {
    subject,
    outcome: algorithms[algorithm](now, { ...terms, window }, cost, states.get(subject)),
  }
}
