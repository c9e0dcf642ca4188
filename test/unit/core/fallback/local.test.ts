/** The local store: its algorithms, its share of a limit, and its evictions. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { algorithms } from '../../../../src/core/connection/algorithms/index.ts'
import type { Limit, StoreRequest } from '../../../../src/core/connection/store.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { Model } from '../../../model/model.ts'
import { completeLimit } from '../../../support/complete-limit.ts'
import { policyOf, take } from '../../../support/local.ts'
import { isLong } from '../../../support/long.ts'

describe('the algorithms in TypeScript', () => {
  const names = Object.keys(algorithms) as (keyof typeof algorithms)[]
  const schedule = fc.record({
    limit: fc.integer({ min: 1, max: 20 }),
    burst: fc.integer({ min: 1, max: 20 }),
    window: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 100_000 })),
    align: fc.constantFrom('first-request' as const, 'clock' as const),
    calendar: fc.option(
      fc.array(fc.integer({ min: 1, max: 30_000 }), { minLength: 1, maxLength: 3 }),
      {
        nil: undefined,
      },
    ),
    steps: fc.array(
      fc.record({
        // The clock is sometimes set back.
        wait: fc.oneof(
          { weight: 9, arbitrary: fc.integer({ min: 0, max: 40_000 }) },
          { weight: 1, arbitrary: fc.integer({ min: -2_000, max: 0 }) },
        ),
        requests: fc.array(
          fc.record({
            mode: fc.constantFrom('take', 'peek', 'follow'),
            subject: fc.constantFrom('x', 'y'),
            cost: fc.integer({ min: 0, max: 22 }),
          }),
          { minLength: 1, maxLength: 4 },
        ),
      }),
      { minLength: 1, maxLength: 30 },
    ),
  })

  test.each(names)('The algorithm %s replies exactly as the oracle.', async (algorithm) => {
    await fc.assert(
      fc.asyncProperty(schedule, async ({ limit, burst, window, align, calendar, steps }) => {
        const policy = { tag: 't', algorithm, limit, burst, windowMs: window, align, localShare: 1 }
        const local = createLocalStore()
        const model = new Model()
        let now = 1_800_000_000_000
        for (const { wait, requests } of steps) {
          now += Math.round((wait * window) / 20_000)
          const storeRequests = requests.map(({ mode, ...row }): StoreRequest => {
            const { period } = completeLimit(
              { ...row, terms: { ...policy, ...(calendar && { calendar }) } },
              now,
            )
            return { mode, limits: [{ ...row, terms: policy, ...(period && { period }) }] }
          })
          expect(await local.decide(storeRequests, { now })).toEqual(
            model.decide(storeRequests, now),
          )
        }
      }),
      { numRuns: isLong ? 1000 : 200 },
    )
  })
})

describe('the local store', () => {
  test('The local store admits a share of the limit, at least one unit.', async () => {
    const admitted = async (options: Partial<PolicyOptions>) => {
      const local = createLocalStore(() => 1_000_000)
      let count = 0
      while ((await local.decide([take(policyOf(options))])).states[0]![0]!.allowed) count += 1
      return count
    }
    expect(await admitted({ limit: 10, localShare: 0.25 })).toBe(2)
    expect(await admitted({ limit: 10 })).toBe(10)
    expect(await admitted({ limit: 3, localShare: 0.25 })).toBe(1)
    expect(
      await admitted({ limit: 100, algorithm: 'token-bucket', burst: 8, localShare: 0.25 }),
    ).toBe(2)
  })

  test('A cost above the share takes the whole share, and a cost above the limit is never admitted.', async () => {
    const local = createLocalStore(() => 1_000_000)
    const ask = async (cost: number, subject: string) =>
      (await local.decide([take(policyOf({ localShare: 0.25 }), cost, subject)])).states[0]![0]!
    expect(await ask(5, 'x')).toMatchObject({ allowed: true, remaining: 0 })
    expect(await ask(11, 'y')).toMatchObject({ allowed: false, retryAfterMs: null })
  })

  test('After the given calendar periods, windows of the length of the last one follow.', async () => {
    const local = createLocalStore()
    const terms = policyOf({ algorithm: 'fixed-window', limit: 1, localShare: 1 })
    const limits: Limit[] = [{ subject: 'x', terms, cost: 1, period: [0, 10, 30] }]
    const at = async (now: number) =>
      (await local.decide([{ mode: 'take', limits }], { now })).states[0]![0]!
    expect(await at(35)).toMatchObject({ allowed: true, resetAfterMs: 15 })
    expect(await at(49)).toMatchObject({ allowed: false, retryAfterMs: 1 })
    expect(await at(50)).toMatchObject({ allowed: true, resetAfterMs: 20 })
  })

  test('A request in the local store charges all of its limits or none.', async () => {
    const local = createLocalStore(() => 1_000_000)
    const [wide, narrow] = [
      policyOf({ localShare: 1 }),
      policyOf({ name: 'b', limit: 1, localShare: 1 }),
    ]
    const both: StoreRequest = {
      mode: 'take',
      limits: [
        { subject: 'x', terms: wide, cost: 1 },
        { subject: 'x', terms: narrow, cost: 1 },
      ],
    }
    await local.decide([both])
    const { states } = await local.decide([both])
    expect(states[0]!.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 9],
      [false, 0],
    ])
  })

  test('A follow is charged after an admitted take or as the first request, and after no other request.', async () => {
    const local = createLocalStore(() => 1_000_000)
    const one = take(policyOf({ limit: 1, localShare: 1 }))
    const follow: StoreRequest = {
      ...take(policyOf({ name: 'b', localShare: 1 })),
      mode: 'follow',
    }
    const left = async (...requests: StoreRequest[]) =>
      (await local.decide([...requests, follow])).states.at(-1)![0]!.remaining
    expect(await left(one)).toBe(9)
    expect(await left(one)).toBe(9)
    expect(await left({ ...one, mode: 'peek' })).toBe(9)
    expect(await left({ ...one, mode: 'refund' })).toBe(9)
    expect(await left()).toBe(8)
    expect(await left(follow, follow)).toBe(5)
  })

  test('The local store counts no slots and starts no bans, because it could not end them early.', async () => {
    const local = createLocalStore(() => 1_000_000)
    const slots = { ...policyOf({ limit: 2, localShare: 1 }), algorithm: 'concurrency' as const }
    for (const slot of ['a', 'b', 'c']) {
      const limits = [{ subject: 'x', terms: slots, cost: 1, slot }]
      expect((await local.decide([{ mode: 'take', limits }])).states[0]![0]).toEqual({
        allowed: true,
        remaining: 2,
        retryAfterMs: 0,
        resetAfterMs: 0,
        nextAfterMs: 0,
      })
    }
    const many = [{ subject: 'x', terms: slots, cost: 3, slot: 'd' }]
    const { states } = await local.decide([{ mode: 'take', limits: many }])
    expect(states[0]![0]).toMatchObject({ allowed: false, retryAfterMs: null })

    const penalty = { tag: 'p', after: 1, withinMs: 1000, banMs: 9000, maxMs: 9000 }
    const one = take(policyOf({ algorithm: 'fixed-window', limit: 1, localShare: 1 }))
    const banned: StoreRequest = { ...one, limits: [{ ...one.limits[0]!, penalty }] }
    await local.decide([banned, banned])
    const { states: after } = await local.decide([banned], { now: 1_001_000 })
    expect(after[0]![0]).toMatchObject({ allowed: true })
  })

  test('A reset clears its limit in the local store, and a ban has no effect.', async () => {
    const local = createLocalStore(() => 1_000_000)
    const [a, b] = [policyOf({ localShare: 1 }), policyOf({ name: 'b', localShare: 1 })]
    const penalty = { tag: 'p', after: 1, withinMs: 1000, banMs: 9000, maxMs: 9000 }
    await local.decide([take(a, 4), take(b, 4), take(a, 4, 'y')])
    const { states } = await local.decide([
      { ...take(a), mode: 'reset' },
      { mode: 'ban', limits: [{ ...take(b).limits[0]!, penalty }], banMs: 9000 },
      { mode: 'unban', limits: [{ ...take(b).limits[0]!, penalty }] },
      { ...take(a, 1, 'y'), mode: 'peek' },
      { ...take(a), mode: 'follow' },
    ])
    expect(states.map(([state]) => [state!.allowed, state!.remaining])).toEqual([
      [true, 10],
      [true, 6],
      [true, 6],
      [true, 6],
      [true, 10],
    ])
  })

  test('decideEach of the local store decides each list independently, in order.', async () => {
    const local = createLocalStore()
    const one = take(policyOf({ limit: 1, localShare: 1 }))
    const follow: StoreRequest = {
      ...take(policyOf({ name: 'b', localShare: 1 })),
      mode: 'follow',
    }
    const replies = await local.decideEach([[one], [one, follow], [follow]], { now: 5 })
    expect(replies).toMatchObject([
      { decidedAt: 5, states: [[{ allowed: true }]] },
      { decidedAt: 5, states: [[{ allowed: false }], [{ remaining: 10 }]] },
      { decidedAt: 5, states: [[{ remaining: 9 }]] },
    ])
  })

  test('The local store keeps at most 10,000 limits, and few of 10,001 keys get more than their limit.', async () => {
    const local = createLocalStore(() => 1_000_000)
    const policy = policyOf({ limit: 5 })
    let passed = 0
    for (let round = 0; round < (isLong ? 20 : 8); round++) {
      for (let key = 0; key < 10_001; key++) {
        const { states } = await local.decide([take(policy, 1, `s${key}`)])
        if (states[0]![0]!.allowed) passed += 1
      }
    }
    expect(passed).toBeGreaterThanOrEqual(50_005)
    expect(passed).toBeLessThan(51_000)
  })

  test('A refund in the local store returns units in every algorithm.', async () => {
    for (const algorithm of Object.keys(algorithms) as (keyof typeof algorithms)[]) {
      const local = createLocalStore(() => 1_000_000)
      const burst = algorithm === 'token-bucket' ? { burst: 5 } : {}
      const policy = policyOf({ algorithm, limit: 5, ...burst })
      await local.decide([take(policy, 5)])
      const refund = { ...take(policy, 3), mode: 'refund' as const, decidedAt: 1_000_000 }
      await local.decide([refund])
      const { states } = await local.decide([take(policy, 3), take(policy, 1)])
      expect(
        states.map(([state]) => state!.allowed),
        algorithm,
      ).toEqual([true, false])
    }
  })
})

test('A charge under a small plan does not shorten the refill time of a large plan.', async () => {
  const local = createLocalStore()
  const large = policyOf({ algorithm: 'token-bucket', limit: 1000, window: '1m' })
  const small = { ...large, limit: 10, burst: 10 }
  let now = 1_000_000
  let admitted = 0
  const takeAll = async (policy: Limit['terms'], units: number) => {
    const { states } = await local.decide([take(policy, units)], { now })
    if (states[0]![0]!.allowed) admitted += units
    return states[0]![0]!
  }
  const end = now + 5 * 60_000
  while (now < end) {
    for (const units of [1000, 500, 100, 20, 5, 1]) await takeAll(large, units)
    now += 660
    await takeAll(large, 1)
    const { resetAfterMs } = await takeAll(small, 1)
    now += Math.max(1, Math.min(resetAfterMs, 6_000))
  }
  expect(admitted).toBeLessThanOrEqual(1000 + 5 * 1000 + 1000)
})
