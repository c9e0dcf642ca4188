/** Different values in one isolate: the algorithm by itself, and the local store. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  distinct as algorithm,
  released,
} from '../../../../src/core/connection/algorithms/distinct.ts'
import type { State } from '../../../../src/core/connection/algorithms/index.ts'
import type { Limit } from '../../../../src/core/connection/store.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const NOW = 1_800_000_000_000
const terms = {
  tag: 't',
  algorithm: 'distinct',
  burst: 2,
  align: 'first-request',
  localShare: 1,
} as const

test('No window has more different values than the limit, and no value that counts is refused.', () => {
  const step = fc.record({
    wait: fc.constantFrom(0, 1, 5, 9, 10, 11),
    values: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 2 }),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3 }), fc.array(step), (limit, steps) => {
      const quota = { limit, windowMs: 10, burst: limit, align: 'clock' } as const
      const uses: { value: string; at: number }[] = []
      let state: State | undefined
      let now = NOW
      for (const { wait, values } of steps) {
        now += wait
        const counted = () =>
          new Set(uses.filter(({ at }) => at > now - 10).map(({ value }) => value))
        const isKnown = values.every((value) => counted().has(value))
        const room = new Set([...counted(), ...values]).size <= limit
        const outcome = algorithm(now, { ...quota, values }, values.length, state)
        expect(outcome.allowed).toBe(isKnown || room)
        if (outcome.allowed) uses.push(...values.map((value) => ({ value, at: now })))
        state = outcome.state ?? state
        expect(outcome.remaining).toBe(limit - counted().size)
      }
    }),
  )
})

test('A value that counts needs no room, also if the limit was lowered.', () => {
  const quota = { windowMs: 10, burst: 5, align: 'clock' } as const
  const take = (limit: number, values: string[], state?: State) =>
    algorithm(NOW, { ...quota, limit, values }, values.length, state)
  const { state } = take(5, ['a', 'b', 'c'])
  expect(take(1, ['b'], state)).toMatchObject({ allowed: true, remaining: 0 })
  expect(take(1, ['d'], state)).toMatchObject({ allowed: false, retryAfterMs: 10 })
  expect(take(1, ['d', 'e'], state)).toMatchObject({ allowed: false, retryAfterMs: null })
})

test('A release takes back a first use of its time, and no repeat.', () => {
  const quota = { limit: 5, windowMs: 10, burst: 5, align: 'clock' } as const
  const use = (at: number, state: State | undefined, ...values: string[]) =>
    algorithm(NOW + at, { ...quota, values }, values.length, state).state!
  const state = use(2, use(1, use(0, undefined, 'a'), 'a', 'b'), 'c')
  const release = (value: string, at?: number, now = 3) =>
    released(state, { windowMs: 10, values: [value] }, NOW + now, at === undefined ? at : NOW + at)
      ?.values
  expect(state.values).toEqual(['a', 'b', 'c'])
  expect(release('a', 1)).toBeUndefined()
  expect(release('b', 0)).toBeUndefined()
  expect(release('b', 1)).toEqual(['a', 'c'])
  expect(release('a')).toEqual(['b', 'c'])
  expect(release('b', 1, 11)).toBeUndefined()
})

test('The local store keeps no values of replies, by which clients could fill the memory.', async () => {
  const local = createLocalStore(() => NOW, Math.random, { distinct: algorithm })
  const refusal = {
    allowed: false,
    remaining: 9_999,
    retryAfterMs: 900,
    resetAfterMs: 1000,
    nextAfterMs: 900,
  }
  const own = { ...terms, limit: 10_000, windowMs: 1000 }
  const limitOf = (client: number): Limit => {
    const values = Array.from({ length: 10_000 }, (_, n) => `${client}-a-value-${n}`)
    return { subject: `s${client}`, terms: own, cost: 10_000, values }
  }
  collect()
  const before = process.memoryUsage().heapUsed
  for (let client = 0; client < 100; client += 1) local.learn(limitOf(client), refusal, NOW, NOW)
  collect()
  expect((process.memoryUsage().heapUsed - before) / 1024 / 1024).toBeLessThan(10)
  const { states } = await local.decide([{ mode: 'take', limits: [limitOf(7)] }])
  expect(states[0]![0]).toMatchObject({ allowed: false, retryAfterMs: 900 })
})

test('The local store counts values up to its share, and repeats a refusal of Redis for its value only.', async () => {
  const own: Limit['terms'] = { ...terms, limit: 4, windowMs: 1000, localShare: 0.5 }
  let now = NOW
  const local = createLocalStore(() => now, Math.random, { distinct: algorithm })
  const limitOf = (value: string): Limit => ({ subject: 's', terms: own, cost: 1, values: [value] })
  const take = async (value: string) => {
    const { states } = await local.decide([{ mode: 'take', limits: [limitOf(value)] }])
    return states[0]![0]!.allowed
  }
  const refusal = {
    allowed: false,
    remaining: 0,
    retryAfterMs: 900,
    resetAfterMs: 1000,
    nextAfterMs: 900,
  }
  local.learn(limitOf('x'), refusal, now, now)
  expect([await take('x'), await take('a'), await take('a'), await take('b')]).toEqual([
    false,
    true,
    true,
    true,
  ])
  expect([await take('c'), await take('b'), await take('x')]).toEqual([false, true, false])
  const limits = [limitOf('a')]
  await local.decide([{ mode: 'refund', limits, decidedAt: now }])
  expect(await take('c')).toBe(false)
  now += 1000
  expect(await take('x')).toBe(true)
})
