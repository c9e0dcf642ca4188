import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/config/options.ts'
import { parseConfig } from '../../../src/config/parse.ts'
import { answerWithoutStore } from '../../../src/limiter/fallback.ts'
import { algorithms } from '../../../src/store/local/algorithms/index.ts'
import { createLocalStore, type LocalStore } from '../../../src/store/local/local.ts'
import type { Limit, StoreRequest, StoreState } from '../../../src/store/store.ts'
import { Model } from '../../model/model.ts'
import { dress } from '../../support/dress.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const policyOf = (options: Partial<PolicyOptions>) =>
  parseConfig({ policies: [{ name: 'a', limit: 10, window: '1s', ...options }] }).policies[0]!
const take = (
  policy: StoreRequest['limits'][number]['terms'],
  cost = 1,
  subject = 'x',
): StoreRequest => ({
  mode: 'take',
  limits: [{ subject, terms: policy, cost }],
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
              { ...row, terms: { ...policy, ...(calendar && { calendar }) } },
              now,
            )
            return { mode, limits: [{ ...row, terms: policy, ...(period && { period }) }] }
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

  test('takes all of the share for a cost that the whole limit would hold, and never admits one that it would not', async () => {
    const local = createLocalStore(() => 1_000_000)
    const ask = async (cost: number, subject: string) =>
      (await local.decide([take(policyOf({ localShare: 0.25 }), cost, subject)])).states[0]![0]!
    expect(await ask(5, 'x')).toMatchObject({ allowed: true, remaining: 0 })
    expect(await ask(11, 'y')).toMatchObject({ allowed: false, retryAfterMs: null })
  })

  test('keeps at most a million units of sliding logs, and forgets a log with most of its quota left first', async () => {
    const local = createLocalStore(() => 1_000_000)
    const policy = policyOf({ algorithm: 'sliding-log', limit: 10_000 })
    const left = async (subject: string) =>
      (await local.decide([{ ...take(policy, 0, subject), mode: 'peek' }])).states[0]![0]!.remaining
    for (let i = 0; i < 100; i++) await local.decide([take(policy, 10_000, `c${i}`)])
    expect([await left('c0'), await left('c99')]).toEqual([0, 0])
    for (let i = 0; i < 50; i++) await local.decide([take(policy, 9_999, `more${i}`)])
    const lefts = await Promise.all(Array.from({ length: 100 }, (_, i) => left(`c${i}`)))
    const kept = lefts.filter((units) => units === 0).length
    expect(kept).toBeGreaterThan(50) // of 49 that had to go, most came last
  })

  test('charges all limits of a request or none', async () => {
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

  test('charges a policy in shadow after an admitted take, or by itself, and after nothing else', async () => {
    const local = createLocalStore(() => 1_000_000)
    const one = take(policyOf({ limit: 1, localShare: 1 }))
    const shadow: StoreRequest = {
      ...take(policyOf({ name: 'b', localShare: 1 })),
      mode: 'follow',
    }
    const left = async (...requests: StoreRequest[]) =>
      (await local.decide([...requests, shadow])).states.at(-1)![0]!.remaining
    expect(await left(one)).toBe(9)
    expect(await left(one)).toBe(9)
    expect(await left({ ...one, mode: 'peek' })).toBe(9)
    expect(await left({ ...one, mode: 'refund' })).toBe(9)
    expect(await left()).toBe(8)
    expect(await left(shadow, shadow)).toBe(5)
  })

  test('counts no slots, and bans nobody: neither would ever end early', async () => {
    const local = createLocalStore(() => 1_000_000)
    const slots = { ...policyOf({ limit: 2, localShare: 1 }), algorithm: 'concurrency' as const }
    for (const slot of ['a', 'b', 'c']) {
      const limits = [{ subject: 'x', terms: slots, cost: 1, slot }]
      expect((await local.decide([{ mode: 'take', limits: limits }])).states[0]![0]).toEqual({
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

  test('forgets what a reset names, and bans nobody', async () => {
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

  test('decides many lists, each by itself, in their order', async () => {
    const local = createLocalStore()
    const one = take(policyOf({ limit: 1, localShare: 1 }))
    const shadow: StoreRequest = { ...take(policyOf({ name: 'b', localShare: 1 })), mode: 'follow' }
    const replies = await local.decideEach([[one], [one, shadow], [shadow]], { now: 5 })
    expect(replies).toMatchObject([
      { decidedAt: 5, states: [[{ allowed: true }]] },
      { decidedAt: 5, states: [[{ allowed: false }], [{ remaining: 10 }]] },
      { decidedAt: 5, states: [[{ remaining: 9 }]] },
    ])
  })

  test('keeps at most 10,000 limits: of 10,001 keys in turn each gets its limit, and a few once more', async () => {
    const local = createLocalStore(() => 1_000_000)
    const policy = policyOf({ limit: 5 })
    let passed = 0
    for (let round = 0; round < 20; round++) {
      for (let key = 0; key < 10_001; key++) {
        const { states } = await local.decide([take(policy, 1, `s${key}`)])
        if (states[0]![0]!.allowed) passed += 1
      }
    }
    expect(passed).toBeGreaterThanOrEqual(50_005)
    expect(passed).toBeLessThan(51_000)
  })

  test('keeps an exhausted limit through a flood of fresh keys', async () => {
    const local = createLocalStore(() => 1_000_000)
    const policy = policyOf({ limit: 5 })
    await local.decide([take(policy, 5, 'exhausted')])
    for (let key = 0; key < 50_000; key++) await local.decide([take(policy, 1, `fresh-${key}`)])
    const { states } = await local.decide([take(policy, 1, 'exhausted')])
    expect(states[0]![0]!.allowed).toBe(false)
  })

  test('refunds units, so that an answer that does not count costs nothing', async () => {
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

describe('after replies of the store the local store', () => {
  const start = 1_000_000
  const names = Object.keys(algorithms) as (keyof typeof algorithms)[]
  /** What the store says of a limit after these charges, and the local store that has heard it. */
  async function after(policy: Limit['terms'], charges: { wait: number; cost: number }[]) {
    const store = createLocalStore()
    const local = createLocalStore()
    let now = start
    let said: StoreState | undefined
    for (const { wait, cost } of charges) {
      now += wait
      const request = take(policy, cost)
      said = (await store.decide([request], { now })).states[0]![0]!
      local.learn(request.limits[0]!, said, now, now)
    }
    return { store, local, now, said: said! }
  }
  const schedule = fc.array(
    fc.record({ wait: fc.nat(3000), cost: fc.integer({ min: 1, max: 4 }) }),
    { minLength: 1, maxLength: 20 },
  )
  const terms = (algorithm: (typeof names)[number]) =>
    policyOf({
      algorithm,
      limit: 10,
      window: 10_000,
      ...(algorithm === 'token-bucket' && { burst: 10 }),
    })

  test.each(names)('%s: goes on with exactly what was left', async (algorithm) => {
    await fc.assert(
      fc.asyncProperty(schedule, async (charges) => {
        const policy = terms(algorithm)
        const { local, now, said } = await after(policy, charges)
        const peek: StoreRequest = { ...take(policy, 0), mode: 'peek' }
        const { states } = await local.decide([peek], { now })
        expect(states[0]![0]!.remaining).toBe(said.remaining)
      }),
      { numRuns: 1000 },
    )
  })

  test.each(['fixed-window', 'token-bucket'] as const)(
    '%s: admits and refuses as the store would, at any later time',
    async (algorithm) => {
      await fc.assert(
        fc.asyncProperty(schedule, schedule, async (charges, outage) => {
          const policy = terms(algorithm)
          const { store, local, now } = await after(policy, charges)
          let time = now
          for (const { wait, cost } of outage) {
            time += wait
            const answers = await Promise.all(
              [store, local].map((one) => one.decide([take(policy, cost)], { now: time })),
            )
            const [expected, got] = answers.map(({ states }) => states[0]![0]!)
            expect([got!.allowed, got!.remaining]).toEqual([expected!.allowed, expected!.remaining])
          }
        }),
        { numRuns: 1000 },
      )
    },
  )

  test.each(names)('%s: refuses until the wait of a refusal is over', async (algorithm) => {
    await fc.assert(
      fc.asyncProperty(schedule, fc.nat(20_000), async (charges, wait) => {
        const policy = terms(algorithm)
        const { store, local, now } = await after(policy, charges)
        const said = (await store.decide([take(policy, 10)], { now })).states[0]![0]!
        if (said.allowed) return
        local.learn(take(policy, 10).limits[0]!, said, now, now)
        const { states } = await local.decide([take(policy, 10)], { now: now + wait })
        if (wait < said.retryAfterMs!) expect(states[0]![0]!.allowed).toBe(false)
      }),
      { numRuns: 1000 },
    )
  })

  test('does not add its own limit to what the store has admitted', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 50, window: '1d' })
    const { local, now } = await after(
      policy,
      Array.from({ length: 50 }, () => ({ wait: 0, cost: 1 })),
    )
    const { states } = await local.decide([take(policy)], { now })
    expect(states[0]![0]!.allowed).toBe(false)
  })

  test('takes the last word by the store’s clock: a reply that was overtaken changes nothing', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1d' })
    const store = createLocalStore()
    const local = createLocalStore()
    const replies: StoreState[] = []
    for (let n = 0; n < 6; n++) {
      replies.push((await store.decide([take(policy)], { now: start + n })).states[0]![0]!)
    }
    for (const n of [5, 4, 0]) {
      local.learn(take(policy).limits[0]!, replies[n]!, start + n, start + 100)
    }
    const { states } = await local.decide([take(policy)], { now: start + 100 })
    expect(states[0]![0]!.allowed).toBe(false)
  })

  test('holds a ban that the store has set, and forgets it when it is over', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1s' })
    const local = createLocalStore()
    const { now, said } = await after(policy, [{ wait: 0, cost: 5 }])
    const banned = { ...said, allowed: false, retryAfterMs: 60_000, bannedForMs: 60_000 }
    local.learn(take(policy).limits[0]!, banned, now, now)
    const at = async (time: number) =>
      (await local.decide([take(policy)], { now: time })).states[0]![0]!.allowed
    expect([await at(now + 59_999), await at(now + 60_000)]).toEqual([false, true])
  })

  test('makes a request wait for the end of a ban although the limit has room', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1d' })
    const local = createLocalStore(() => start + 1000)
    const { said } = await after(policy, [{ wait: 0, cost: 1 }])
    const banned = { ...said, allowed: false, retryAfterMs: 60_000, bannedForMs: 60_000 }
    const row = { ...take(policy).limits[0]!, policy, partitionKey: [] }
    local.learn(row, banned, start, start)
    expect(await answerWithoutStore([row], 'take', local)).toMatchObject({
      allowed: false,
      retryAfterMs: 59_000,
    })
  })

  test.each(['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket'] as const)(
    '%s: counts what was used under one plan when another plan asks for the same key',
    async (algorithm) => {
      const large = policyOf({
        algorithm,
        limit: 1000,
      })
      const small = { ...large, limit: 10, burst: 10 }
      const passedOf = async (asked: Limit['terms'], local: LocalStore) => {
        const replies = Array.from({ length: 1000 }, () =>
          local.decide([take(asked)], { now: start }),
        )
        return (await Promise.all(replies)).filter(({ states }) => states[0]![0]!.allowed).length
      }
      // 10 units are used under the large plan; then the small plan refuses one more.
      const larger = await after(large, [{ wait: 0, cost: 10 }])
      expect(await passedOf(small, larger.local)).toBe(0)
      const smaller = await after(small, [
        { wait: 0, cost: 10 },
        { wait: 0, cost: 1 },
      ])
      expect(smaller.said.allowed).toBe(false)
      expect(await passedOf(large, smaller.local)).toBe(990)
    },
  )

  test('goes by the last word after its own window has ended, if the window of the store has not', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 50, window: '1m' })
    const local = createLocalStore()
    await local.decide([take(policy, 45)], { now: start })
    const store = createLocalStore()
    const now = start + 50_000
    const said = (await store.decide([take(policy, 44)], { now })).states[0]![0]!
    local.learn(take(policy).limits[0]!, said, now, now)
    const { states } = await local.decide([take(policy, 6), take(policy, 5)], { now })
    expect(states.map(([state]) => state!.allowed)).toEqual([false, true])
    const later = await local.decide([take(policy, 7), take(policy, 6)], { now: start + 60_000 })
    expect(later.states.map(([state]) => state!.allowed)).toEqual([false, true])
  })

  test('refuses exhausted sliding logs without keeping all of their units', async () => {
    const policy = policyOf({ algorithm: 'sliding-log', limit: 10_000 })
    const local = createLocalStore()
    const { said } = await after(policy, [{ wait: 0, cost: 10_000 }])
    const refusal = { ...said, allowed: false, retryAfterMs: said.resetAfterMs }
    const keys = Array.from({ length: 500 }, (_, n) => `s${n}`)
    collect()
    const before = process.memoryUsage().heapUsed
    for (const key of keys) {
      local.learn(take(policy, 1, key).limits[0]!, refusal, start, start)
      const { states } = await local.decide([take(policy, 1, key)], { now: start })
      expect(states[0]![0]!.allowed).toBe(false)
    }
    collect()
    expect((process.memoryUsage().heapUsed - before) / 1024 / 1024).toBeLessThan(20)
    const again = await local.decide(
      keys.map((key) => take(policy, 1, key)),
      { now: start },
    )
    expect(again.states.every(([state]) => !state!.allowed)).toBe(true)
  })

  test('counts units that it has charged itself once more, whatever the store says of those it knows', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1d' })
    const local = createLocalStore()
    const row = take(policy).limits[0]!
    await local.decide([take(policy, 4)], { now: start })
    const store = createLocalStore()
    const said = (await store.decide([take(policy, 1)], { now: start + 1 })).states[0]![0]!
    local.learn(row, said, start + 1, start + 1)
    const { states } = await local.decide([take(policy, 1), take(policy, 1)], { now: start + 2 })
    expect(states.map(([state]) => state!.allowed)).toEqual([true, false])
  })
})

test('a charge under a small plan does not bring the run-out of a large one nearer', async () => {
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

test('a late charge of the store pays once for each unit that was charged here', async () => {
  const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1d' })
  const local = createLocalStore(() => 1_000_000)
  const row = take(policy).limits[0]!
  expect(local.pays(row)).toBe(false)
  await local.decide([take(policy), take(policy)])
  expect([local.pays(row), local.pays(row), local.pays(row)]).toEqual([true, true, false])
})
