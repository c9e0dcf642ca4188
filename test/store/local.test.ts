import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { algorithms } from '../../src/algorithms/index.ts'
import type { PolicyOptions } from '../../src/options.ts'
import { parseConfig } from '../../src/policy.ts'
import { createLocalStore } from '../../src/store/local.ts'
import type { StoreRequest } from '../../src/store/store.ts'
import { dress } from '../lua/dress.ts'
import { Model } from '../model.ts'

const policyOf = (options: Partial<PolicyOptions>) =>
  parseConfig({ policies: [{ name: 'a', limit: 10, window: '1s', ...options }] }).policies[0]!
const take = (
  policy: StoreRequest['rows'][number]['policy'],
  cost = 1,
  subject = 'x',
): StoreRequest => ({
  mode: 'take',
  rows: [{ subject, policy, cost }],
})

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
        // Now and then the clock runs back.
        wait: fc.oneof(
          { weight: 9, arbitrary: fc.integer({ min: 0, max: 40_000 }) },
          { weight: 1, arbitrary: fc.integer({ min: -2_000, max: 0 }) },
        ),
        requests: fc.array(
          fc.record({
            mode: fc.constantFrom('take', 'look', 'shadow'),
            subject: fc.constantFrom('x', 'y'),
            cost: fc.integer({ min: 0, max: 22 }),
          }),
          { minLength: 1, maxLength: 4 },
        ),
      }),
      { minLength: 1, maxLength: 30 },
    ),
  })

  test.each(names)('%s says what the oracle says, to the last number', async (algorithm) => {
    await fc.assert(
      fc.asyncProperty(schedule, async ({ limit, burst, window, align, calendar, steps }) => {
        const policy = { tag: 't', algorithm, limit, burst, windowMs: window, align, localShare: 1 }
        const local = createLocalStore()
        const model = new Model()
        let now = 1_800_000_000_000
        for (const { wait, requests } of steps) {
          now += Math.round((wait * window) / 20_000)
          const asked = requests.map(({ mode, ...row }): StoreRequest => {
            const { period } = dress(
              { ...row, policy: { ...policy, ...(calendar && { calendar }) } },
              now,
            )
            return { mode, rows: [{ ...row, policy, ...(period && { period }) }] }
          })
          expect(await local.decide(asked, { now })).toEqual(model.decide(asked, now))
        }
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the local store', () => {
  test('admits a share of the limit, at least one unit', async () => {
    const admitted = async (options: Partial<PolicyOptions>) => {
      const local = createLocalStore(() => 1_000_000)
      let count = 0
      while ((await local.decide([take(policyOf(options))])).requests[0]![0]!.allowed) count += 1
      return count
    }
    expect(await admitted({ limit: 10 })).toBe(2)
    expect(await admitted({ limit: 10, localShare: 1 })).toBe(10)
    expect(await admitted({ limit: 3 })).toBe(1)
    expect(await admitted({ limit: 100, algorithm: 'token-bucket', burst: 8 })).toBe(2)
  })

  test('takes all of the share for a cost that the whole limit would hold, and never admits one that it would not', async () => {
    const local = createLocalStore(() => 1_000_000)
    const ask = async (cost: number, subject: string) =>
      (await local.decide([take(policyOf({}), cost, subject)])).requests[0]![0]!
    expect(await ask(5, 'x')).toMatchObject({ allowed: true, remaining: 0 })
    expect(await ask(11, 'y')).toMatchObject({ allowed: false, retryAfterMs: null })
  })

  test('forgets the oldest beyond a million units of sliding logs, however many clients hold them', async () => {
    const local = createLocalStore(() => 1_000_000)
    const policy = policyOf({ algorithm: 'sliding-log', limit: 10_000, localShare: 1 })
    const left = async (subject: string) =>
      (await local.decide([{ ...take(policy, 0, subject), mode: 'look' }])).requests[0]![0]!
        .remaining
    for (let i = 0; i < 100; i++) await local.decide([take(policy, 10_000, `c${i}`)])
    expect([await left('c0'), await left('c99')]).toEqual([0, 0])
    await local.decide([take(policy, 1, 'more')])
    expect([await left('c0'), await left('c1'), await left('more')]).toEqual([10_000, 0, 9_999])
  })

  test('charges all rows of a request or none', async () => {
    const local = createLocalStore(() => 1_000_000)
    const [wide, narrow] = [
      policyOf({ localShare: 1 }),
      policyOf({ name: 'b', limit: 1, localShare: 1 }),
    ]
    const both: StoreRequest = {
      mode: 'take',
      rows: [
        { subject: 'x', policy: wide, cost: 1 },
        { subject: 'x', policy: narrow, cost: 1 },
      ],
    }
    await local.decide([both])
    const { requests } = await local.decide([both])
    expect(requests[0]!.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 9],
      [false, 0],
    ])
  })

  test('charges a policy in shadow after an admitted take, or by itself, and after nothing else', async () => {
    const local = createLocalStore(() => 1_000_000)
    const one = take(policyOf({ limit: 1, localShare: 1 }))
    const shadow: StoreRequest = {
      ...take(policyOf({ name: 'b', localShare: 1 })),
      mode: 'shadow',
    }
    const left = async (...requests: StoreRequest[]) =>
      (await local.decide([...requests, shadow])).requests.at(-1)![0]!.remaining
    expect(await left(one)).toBe(9)
    expect(await left(one)).toBe(9)
    expect(await left({ ...one, mode: 'look' })).toBe(9)
    expect(await left({ ...one, mode: 'give-back' })).toBe(9)
    expect(await left()).toBe(8)
    expect(await left(shadow, shadow)).toBe(5)
  })

  test('counts no slots, and bans nobody: neither would ever end early', async () => {
    const local = createLocalStore(() => 1_000_000)
    const slots = { ...policyOf({ limit: 2, localShare: 1 }), algorithm: 'concurrency' as const }
    for (const slot of ['a', 'b', 'c']) {
      const rows = [{ subject: 'x', policy: slots, cost: 1, slot }]
      expect((await local.decide([{ mode: 'take', rows }])).requests[0]![0]).toEqual({
        allowed: true,
        remaining: 2,
        retryAfterMs: 0,
        resetAfterMs: 0,
        nextAfterMs: 0,
      })
    }
    const many = [{ subject: 'x', policy: slots, cost: 3, slot: 'd' }]
    const { requests } = await local.decide([{ mode: 'take', rows: many }])
    expect(requests[0]![0]).toMatchObject({ allowed: false, retryAfterMs: null })

    const penalty = { tag: 'p', after: 1, withinMs: 1000, banMs: 9000, maxMs: 9000 }
    const one = take(policyOf({ algorithm: 'fixed-window', limit: 1, localShare: 1 }))
    const banned: StoreRequest = { ...one, rows: [{ ...one.rows[0]!, penalty }] }
    await local.decide([banned, banned])
    const { requests: after } = await local.decide([banned], { now: 1_001_000 })
    expect(after[0]![0]).toMatchObject({ allowed: true })
  })

  test('forgets what a reset names, and bans nobody', async () => {
    const local = createLocalStore(() => 1_000_000)
    const [a, b] = [policyOf({ localShare: 1 }), policyOf({ name: 'b', localShare: 1 })]
    const penalty = { tag: 'p', after: 1, withinMs: 1000, banMs: 9000, maxMs: 9000 }
    await local.decide([take(a, 4), take(b, 4), take(a, 4, 'y')])
    const { requests } = await local.decide([
      { ...take(a), mode: 'reset' },
      { mode: 'ban', rows: [{ ...take(b).rows[0]!, penalty }], banMs: 9000 },
      { mode: 'unban', rows: [{ ...take(b).rows[0]!, penalty }] },
      { ...take(a, 1, 'y'), mode: 'look' },
      { ...take(a), mode: 'shadow' },
    ])
    expect(requests.map(([state]) => [state!.allowed, state!.remaining])).toEqual([
      [true, 10],
      [true, 6],
      [true, 6],
      [true, 6],
      [true, 10],
    ])
  })

  test('decides many lists, each by itself, in their order', async () => {
    const local = createLocalStore()
    const one = take(policyOf({ limit: 1, localShare: 1 }))
    const shadow: StoreRequest = { ...take(policyOf({ name: 'b', localShare: 1 })), mode: 'shadow' }
    const replies = await local.decideEach([[one], [one, shadow], [shadow]], { now: 5 })
    expect(replies).toMatchObject([
      { now: 5, requests: [[{ allowed: true }]] },
      { now: 5, requests: [[{ allowed: false }], [{ remaining: 10 }]] },
      { now: 5, requests: [[{ remaining: 9 }]] },
    ])
  })

  test('keeps at most 10,000 states, the most recently charged', async () => {
    const local = createLocalStore(() => 1_000_000)
    const policy = policyOf({ limit: 1, localShare: 1 })
    for (let i = 0; i < 10_001; i++) await local.decide([take(policy, 1, `s${i}`)])
    const allowed = async (subject: string) =>
      (await local.decide([{ ...take(policy, 1, subject), mode: 'look' }])).requests[0]![0]!.allowed
    expect([await allowed('s0'), await allowed('s1'), await allowed('s10000')]).toEqual([
      true,
      false,
      false,
    ])
  })
})
