/** The denial cache against the oracle: many limits at once, with bans, shadow policies, slots, refunds, operations and new penalties. */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LimitState } from '../../../../src/core/base/decision.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { StoreRequest } from '../../../../src/core/connection/store.ts'
import { decideEach } from '../../../../src/core/decide/decide.ts'
import { createDenialCache } from '../../../../src/core/decide/denial-cache.ts'
import { limitState, limitsOf } from '../../../../src/core/decide/limit.ts'
import type { LimiterParts } from '../../../../src/core/decide/question.ts'
import type { Match } from '../../../../src/core/program/match.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { Model } from '../../../model/model.ts'
import { storeOf } from '../../../support/store-of.ts'
import { fallbackOver } from '../../../support/with-fallback.ts'

const start = Date.UTC(2026, 10, 20, 12)
let now = start
const advance = (by: number) => {
  now += by
  vi.setSystemTime(now)
}

const penalty = fc.record({
  after: fc.integer({ min: 1, max: 3 }),
  within: fc.integer({ min: 50, max: 800 }),
  ban: fc.integer({ min: 50, max: 400 }),
})
const option = fc
  .record({
    algorithm: fc.constantFrom(
      'fixed-window',
      'calendar',
      'sliding-window',
      'sliding-log',
      'token-bucket',
      'concurrency',
    ),
    limit: fc.integer({ min: 1, max: 3 }),
    burst: fc.integer({ min: 1, max: 4 }),
    window: fc.integer({ min: 100, max: 2000 }),
    mode: fc.constantFrom('enforce', 'enforce', 'shadow'),
    open: fc.constantFrom(false, false, false, true),
    /** The penalty of the policy at first, and after the change of policies. */
    penalties: fc
      .constantFrom(0, 0, 1)
      .chain((most) => fc.array(penalty, { minLength: most, maxLength: 2 * most })),
  })
  .map(({ algorithm, open, burst, ...rest }) => ({
    ...rest,
    ...(algorithm === 'token-bucket' && { burst }),
    algorithm: algorithm === 'calendar' ? 'fixed-window' : algorithm,
    calendar: algorithm === 'calendar',
    ...(open && algorithm !== 'concurrency' && { countOnly: 401 }),
    ...(algorithm === 'concurrency' && { onStoreError: 'deny' }),
  }))
/** The policies that apply to a request, and its cost and floor for each. */
const kind = fc.record({
  policyIndexes: fc.subarray([0, 1, 2], { minLength: 1 }),
  costs: fc.array(fc.constantFrom(0, 1, 1, 1, 1, 1, 1, 2), { minLength: 3, maxLength: 3 }),
  floors: fc.array(fc.constantFrom(0, 0, 0, 1, 2), { minLength: 3, maxLength: 3 }),
})
const step = fc.record({
  wait: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 10 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 300 }) },
  ),
  who: fc.nat(1),
  what: fc.constantFrom(...Array(12).fill('take'), 'settle', 'operate', 'change'),
  mode: fc.constantFrom('reset', 'ban', 'unban', 'refund'),
  like: fc.nat(1),
  there: fc.integer({ min: 0, max: 20 }),
  back: fc.integer({ min: 0, max: 20 }),
})

/** States the law. */
export function denialCacheLaw(numRuns: number) {
  beforeEach(() => void vi.useFakeTimers({ now, toFake: ['Date'] }))
  afterEach(() => void vi.useRealTimers())
  test('A refusal by the denial cache is also a refusal of the oracle, with the same numbers.', async () => {
    let cached = 0
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(option, option, option),
        fc.tuple(kind, kind),
        fc.integer({ min: -500, max: 500 }),
        fc.array(step, { minLength: 5, maxLength: 60 }),
        async (options, kinds, ahead, steps) => {
          now = start
          vi.setSystemTime(now)
          const [first, second] = [0, 1].map(
            (version) =>
              parseConfig(
                {
                  policies: options.map(({ penalties, calendar: _, ...one }, index) => ({
                    name: `p${index}`,
                    ...one,
                    ...(penalties[version] && { penalty: penalties[version] }),
                  })),
                },
                defaultFields,
              ).policies,
          )
          const calendars = new Set(
            options.flatMap(({ calendar }, index) => (calendar ? [`p${index}`] : [])),
          )
          let policies = first!
          const truth = new Model()
          let path = { there: 0, back: 0 }
          let calls = 0
          const store = storeOf(async (requests) => {
            calls += 1
            advance(path.there)
            const reply = truth.decide(requests, now + ahead)
            advance(path.back)
            return reply
          })
          const isolates = [createDenialCache(), createDenialCache()]
          const nameSubject = async () => 'a'
          for (const { wait, who, what, mode, like, there, back } of steps) {
            advance(wait)
            path = { there, back }
            const { policyIndexes, costs, floors } = kinds[like]!
            const matches = policyIndexes.map((index): Match => {
              const policy = policies[index]!
              const { windowMs } = policy
              const begun = now - (now % windowMs)
              return {
                terms: policy,
                partitionKey: [['ip', 'a']],
                cost: costs[index]!,
                floor: Math.min(floors[index]!, policy.limit, policy.burst),
                // By the isolate's clock, which differs from the store's.
                ...(calendars.has(policy.name) && {
                  period: [begun, begun + windowMs, begun + 2 * windowMs],
                }),
              }
            })
            const limits = await limitsOf(matches, `slot-${who}`, { nameSubject })
            const each = (mode: StoreRequest['mode'], some = limits) =>
              some.forEach((row) => {
                truth.decide([{ mode, limits: [row] }], now + ahead)
              })
            if (what === 'change') policies = second!
            // Refunds after a response do not notify the caches.
            if (what === 'settle')
              each(
                'refund',
                limits.filter(({ terms }) => terms.settles),
              )
            if (what === 'operate') {
              each(mode, mode === 'ban' ? limits.filter(({ penalty }) => penalty) : limits)
              const subjects = limits.map(({ subject }) => subject)
              for (const cache of isolates) cache.forget(now, subjects)
            }
            if (what !== 'take') continue
            const parts: LimiterParts = {
              store: fallbackOver(store, { denialCache: isolates[who] }).store,
              denialCache: isolates[who],
              nameSubject,
              onStoreError: () => {},
            }
            const before = calls
            const [outcome] = await decideEach([{ matched: { policies: matches } }], parts)
            const { decision } = outcome!
            for (const { allowed, retryAfterMs, bannedForMs } of decision.limits) {
              expect(allowed).toBe(retryAfterMs === 0)
              expect(bannedForMs).not.toBe(0)
            }
            if (calls > before) continue
            cached += 1
            expect(decision.allowed).toBe(false)
            const enforced = limits.filter(({ terms }) => terms.mode === 'enforce')
            const cachedStates = decision.limits.filter(({ mode }) => mode === 'enforce')
            const actual = truth
              .decide([{ mode: 'peek', limits: enforced }], now + ahead)
              .states[0]!.map((state, index): LimitState => limitState(enforced[index]!, state))
            expect(cachedStates.length).toBeGreaterThan(0)
            cachedStates.forEach((limit) => {
              const index = actual.findIndex(({ policy }) => policy === limit.policy)
              const it = actual[index]!
              expect([limit.allowed, limit.remaining]).toEqual([it.allowed, it.remaining])
              for (const field of [
                'retryAfterMs',
                'resetAfterMs',
                'nextAfterMs',
                'bannedForMs',
              ] as const) {
                // During a ban units may still come back, by time or by a refund after a response. Only the ban must match.
                const free = field === 'nextAfterMs' || enforced[index]!.terms.settles
                if (it.bannedForMs && field !== 'bannedForMs' && free) continue
                if (it[field] === null || it[field] === undefined) {
                  expect(limit[field]).toBe(it[field])
                  continue
                }
                expect(limit[field]! - it[field], field).toBeGreaterThanOrEqual(0)
                expect(limit[field]! - it[field], field).toBeLessThanOrEqual(40)
              }
            })
          }
        },
      ),
      { numRuns },
    )
    expect(cached).toBeGreaterThan(50)
  })
}
