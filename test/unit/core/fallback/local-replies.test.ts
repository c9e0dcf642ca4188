/** The local store after replies of the store: it continues from their state. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { algorithms } from '../../../../src/core/connection/algorithms/index.ts'
import type { Limit, StoreRequest, StoreState } from '../../../../src/core/connection/store.ts'
import { createLocalStore, type LocalStore } from '../../../../src/core/fallback/local.ts'
import { policyOf, take } from '../../../support/local.ts'
import { isLong } from '../../../support/long.ts'
import { failing, fallbackOver } from '../../../support/with-fallback.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const numRuns = isLong ? 1000 : 100

describe('the local store after replies of the store', () => {
  const start = 1_000_000
  const names = Object.keys(algorithms) as (keyof typeof algorithms)[]
  /** The last state that the store replies after these charges, and a local store that learned all of them. */
  async function after(policy: Limit['terms'], charges: { wait: number; cost: number }[]) {
    const store = createLocalStore()
    const local = createLocalStore()
    let now = start
    let state: StoreState | undefined
    for (const { wait, cost } of charges) {
      now += wait
      const request = take(policy, cost)
      state = (await store.decide([request], { now })).states[0]![0]!
      local.learn(request.limits[0]!, state, now, now)
    }
    return { store, local, now, state: state! }
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

  test.each(names)(
    'After a reply for a %s the local store has exactly as many units remaining as the store.',
    async (algorithm) => {
      await fc.assert(
        fc.asyncProperty(schedule, async (charges) => {
          const policy = terms(algorithm)
          const { local, now, state } = await after(policy, charges)
          const peek: StoreRequest = { ...take(policy, 0), mode: 'peek' }
          const { states } = await local.decide([peek], { now })
          expect(states[0]![0]!.remaining).toBe(state.remaining)
        }),
        { numRuns },
      )
    },
  )

  test.each(['fixed-window', 'token-bucket'] as const)(
    'After a reply for a %s the local store decides like the store at any later time.',
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
        { numRuns },
      )
    },
  )

  test.each(names)(
    'After a refusal by a %s the local store refuses until the wait of the refusal is over.',
    async (algorithm) => {
      await fc.assert(
        fc.asyncProperty(schedule, fc.nat(20_000), async (charges, wait) => {
          const policy = terms(algorithm)
          const { store, local, now } = await after(policy, charges)
          const state = (await store.decide([take(policy, 10)], { now })).states[0]![0]!
          if (state.allowed) return
          local.learn(take(policy, 10).limits[0]!, state, now, now)
          const { states } = await local.decide([take(policy, 10)], { now: now + wait })
          if (wait < state.retryAfterMs!) expect(states[0]![0]!.allowed).toBe(false)
        }),
        { numRuns },
      )
    },
  )

  test('The local share is not added to the units that the store has admitted.', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 50, window: '1d' })
    const { local, now } = await after(
      policy,
      Array.from({ length: 50 }, () => ({ wait: 0, cost: 1 })),
    )
    const { states } = await local.decide([take(policy)], { now })
    expect(states[0]![0]!.allowed).toBe(false)
  })

  test('A reply that is older than the last one, by the clock of the store, changes nothing.', async () => {
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

  test('After a charge at a faster rate, the local store reports no wait beyond the end of its state.', async () => {
    const fast = policyOf({ algorithm: 'token-bucket', limit: 10, burst: 10, window: 10_000 })
    const local = createLocalStore()
    await local.decide([take(fast, 10)], { now: start })
    const slow = { ...fast, limit: 1 }
    const peek: StoreRequest = { ...take(slow, 1), mode: 'peek' }
    const { states } = await local.decide([peek], { now: start + 2_000 })
    expect(states[0]![0]).toMatchObject({ resetAfterMs: 8_000, nextAfterMs: 8_000 })
  })

  test('A ban by the store lasts until its end in the local store.', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1s' })
    const local = createLocalStore()
    const { now, state } = await after(policy, [{ wait: 0, cost: 5 }])
    const banned = { ...state, allowed: false, retryAfterMs: 60_000, bannedForMs: 60_000 }
    local.learn(take(policy, 5).limits[0]!, banned, now, now) // a ban applies to smaller costs, too
    const at = async (time: number) =>
      (await local.decide([take(policy)], { now: time })).states[0]![0]!.allowed
    expect([await at(now + 59_999), await at(now + 60_000)]).toEqual([false, true])
  })

  test('A banned request has to wait for the end of the ban although its limit has units remaining.', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1d' })
    const local = createLocalStore(() => start + 1000)
    const { state } = await after(policy, [{ wait: 0, cost: 1 }])
    const banned = { ...state, allowed: false, retryAfterMs: 60_000, bannedForMs: 60_000 }
    const row = { ...take(policy).limits[0]!, partitionKey: [] }
    local.learn(row, banned, start, start)
    const { store } = fallbackOver(failing(), { local })
    const { states } = await store.decide([{ mode: 'take', limits: [row] }], { fallback: true })
    expect(states[0]).toMatchObject([{ allowed: false, retryAfterMs: 59_000 }])
  })

  test.each(['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket'] as const)(
    'Units of a %s that are used under one plan count under another plan of the same key.',
    async (algorithm) => {
      const large = policyOf({
        algorithm,
        limit: 1000,
      })
      const small = { ...large, limit: 10, burst: 10 }
      const passedOf = async (plan: Limit['terms'], local: LocalStore) => {
        const replies = Array.from({ length: 1000 }, () =>
          local.decide([take(plan)], { now: start }),
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
      expect(smaller.state.allowed).toBe(false)
      expect(await passedOf(large, smaller.local)).toBe(990)
    },
  )

  test('The last reply counts until the window of the store ends, even after the local window has ended.', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 50, window: '1m' })
    const local = createLocalStore()
    await local.decide([take(policy, 45)], { now: start })
    const store = createLocalStore()
    const now = start + 50_000
    const state = (await store.decide([take(policy, 44)], { now })).states[0]![0]!
    local.learn(take(policy).limits[0]!, state, now, now)
    const { states } = await local.decide([take(policy, 6), take(policy, 5)], { now })
    expect(states.map(([state]) => state!.allowed)).toEqual([false, true])
    const later = await local.decide([take(policy, 7), take(policy, 6)], { now: start + 60_000 })
    expect(later.states.map(([state]) => state!.allowed)).toEqual([false, true])
  })

  test('Exhausted sliding logs are refused without a record of each unit.', async () => {
    const policy = policyOf({ algorithm: 'sliding-log', limit: 10_000 })
    const local = createLocalStore()
    const { state } = await after(policy, [{ wait: 0, cost: 10_000 }])
    const refusal = { ...state, allowed: false, retryAfterMs: state.resetAfterMs }
    const keys = Array.from({ length: 200 }, (_, n) => `s${n}`)
    collect()
    const before = process.memoryUsage().heapUsed
    for (const key of keys) {
      local.learn(take(policy, 1, key).limits[0]!, refusal, start, start)
      const { states } = await local.decide([take(policy, 1, key)], { now: start })
      expect(states[0]![0]!.allowed).toBe(false)
    }
    collect()
    expect((process.memoryUsage().heapUsed - before) / 1024 / 1024).toBeLessThan(8)
    const again = await local.decide(
      keys.map((key) => take(policy, 1, key)),
      { now: start },
    )
    expect(again.states.every(([state]) => !state!.allowed)).toBe(true)
  })

  test('Locally charged units count in addition to the units in a reply of the store.', async () => {
    const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1d' })
    const local = createLocalStore()
    const row = take(policy).limits[0]!
    await local.decide([take(policy, 4)], { now: start })
    const store = createLocalStore()
    const state = (await store.decide([take(policy, 1)], { now: start + 1 })).states[0]![0]!
    local.learn(row, state, start + 1, start + 1)
    const { states } = await local.decide([take(policy, 1), take(policy, 1)], { now: start + 2 })
    expect(states.map(([state]) => state!.allowed)).toEqual([true, false])
  })
})

test('A late charge of the store matches each locally charged unit once.', async () => {
  const policy = policyOf({ algorithm: 'fixed-window', limit: 5, window: '1d' })
  const local = createLocalStore(() => 1_000_000)
  const row = take(policy).limits[0]!
  expect(local.matchLateCharge(row)).toBe(false)
  await local.decide([take(policy), take(policy)])
  expect([
    local.matchLateCharge(row),
    local.matchLateCharge(row),
    local.matchLateCharge(row),
  ]).toEqual([true, true, false])
})
