/** Properties of the linter: its findings about random configurations are true for random requests. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ConfigOptions, PolicyOptions } from '../../../src/core/config/options.ts'
import type { State } from '../../../src/core/connection/algorithms/index.ts'
import { lint } from '../../../src/lint/lint.ts'
import { createMatcher } from '../../support/create-matcher.ts'
import { isLong } from '../../support/long.ts'
import { request } from '../../support/random-conditions.ts'
import { config, decide, often } from '../../support/random-limits.ts'

const RUNS = Number(process.env.LINT_RUNS ?? (isLong ? 150 : 40))
const requests = fc.array(request, { minLength: 30, maxLength: 30 })
type Sent = typeof request extends fc.Arbitrary<infer R> ? R : never

const matchEach = (options: ConfigOptions, sent: Sent[]) => {
  const describe = createMatcher(options)
  return Promise.all(sent.map(({ url, init, circumstances }) => describe(url, init, circumstances)))
}

test('An entry that is reported to match everything decides every request.', async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(config, requests, async (options, sent) => {
      const all = lint(options).filter(
        ({ code, message }) =>
          code === 'list-takes-all' && /: every request (is|skips) /.test(message),
      )
      count += all.length
      for (const { denied, policies } of all.length > 0 ? await matchEach(options, sent) : []) {
        expect(denied || policies.length === 0).toBeTruthy()
      }
    }),
    { numRuns: RUNS * 2 },
  )
  expect(count).toBeGreaterThan(0)
})

test('A shield with the limit that the linter suggests refuses no request that the policies admit.', async () => {
  const PERIOD_MS = 10_000
  const reached: number[] = [] // largest used part of the limit in each run
  const shieldKey = often<PolicyOptions['key'] & {}>(['ip'], ['country'], ['ip', 'header:x-a'])
  // Few different requests with short pauses, so that many are admitted.
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
      const limit = Number(/Raise the limit of the shield to at least (\d+)/.exec(tight.hint)![1])
      const found = lint(withShield(limit)).map(({ code }) => code)
      expect(found).not.toContain('tight-shield')
      const descriptions = await matchEach(withShield(limit), kinds)
      const states = new Map<string, State>()
      const passed = new Map<string, number[]>()
      let [now, most] = [1_789_000_000_123, 0]
      for (const [which, pause] of schedule) {
        now += pause
        const { denied, policies, shield } = descriptions[which % kinds.length]!
        if (denied) continue
        const rows = policies.map((row) => ({ ...row, ...decide(row, now, states) }))
        const enforced = rows.filter(({ terms }) => terms.mode === 'enforce')
        if (enforced.some(({ outcome }) => !outcome.allowed)) continue
        for (const { subject, outcome } of rows)
          if (outcome.state) states.set(subject, outcome.state)
        if (!shield || enforced.every(({ cost }) => cost === 0)) continue
        const client = JSON.stringify(shield)
        const times = [...(passed.get(client) ?? []), now].filter((at) => at > now - PERIOD_MS)
        passed.set(client, times)
        most = Math.max(most, times.length)
        expect(times.length).toBeLessThanOrEqual(limit)
      }
      reached.push(most / limit)
    }),
    { numRuns: RUNS * 2 },
  )
  expect(reached.length).toBeGreaterThan(RUNS / 10)
  expect(Math.max(...reached)).toBeGreaterThan(0.8) // the suggested limit is not larger than necessary
})
