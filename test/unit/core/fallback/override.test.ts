/** Limits of operators in the local store. */
import { expect, test } from 'vitest'
import type { Limit, StoreRequest } from '../../../../src/core/connection/store.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { policyOf } from '../../../support/local.ts'

const start = 1_800_000_000_000
const state = {
  allowed: true,
  remaining: 49,
  retryAfterMs: 0,
  resetAfterMs: 1000,
  nextAfterMs: 1000,
  limit: 50,
  overriddenForMs: 5000,
}

function isolate(options: Partial<Limit> = {}, change: Partial<typeof state> = {}) {
  const policy = policyOf({ algorithm: 'fixed-window', limit: 2 })
  let now = start
  const local = createLocalStore(() => now)
  const override = { share: 0, scalesBurst: true }
  const limit: Limit = { subject: 'x', terms: policy, cost: 1, override, ...options }
  local.learn(limit, { ...state, ...change }, start, start)
  const take = async (cost: number, at: number) => {
    now = start + at
    const request: StoreRequest = { mode: 'take', limits: [{ ...limit, cost }] }
    return (await local.decide([request])).states[0]![0]!
  }
  return { take, local, limit }
}

test('The local store continues with the limit of the last reply.', async () => {
  const { take } = isolate()
  expect(await take(49, 10)).toMatchObject({ allowed: true, remaining: 0 })
  expect((await take(1, 10)).allowed).toBe(false)
})

test('The limit outlasts the counter, and ends with its time.', async () => {
  const { take } = isolate()
  expect(await take(50, 1500)).toMatchObject({ allowed: true, remaining: 0 })
  expect(await take(3, 4999)).toMatchObject({ allowed: true })
  expect(await take(3, 5000)).toMatchObject({ allowed: false, retryAfterMs: null })
})

test('The limit of a full quota is remembered.', async () => {
  const { take } = isolate({}, { remaining: 50, resetAfterMs: 0, nextAfterMs: 0 })
  expect((await take(50, 10)).allowed).toBe(true)
})

test('A later reply without the limit of an operator ends it.', async () => {
  const { take, local, limit } = isolate()
  const { limit: _, overriddenForMs: __, ...plain } = state
  local.learn(limit, { ...plain, remaining: 1 }, start + 10, start + 10)
  expect((await take(2, 20)).allowed).toBe(false)
  expect((await take(1, 20)).allowed).toBe(true)
})

test('The floor is the share of the limit in force.', async () => {
  const override = { share: 0.5, scalesBurst: true }
  const { take } = isolate({ override, floor: 1 }, { remaining: 24 })
  expect((await take(25, 1500)).allowed).toBe(true)
  expect((await take(1, 1500)).allowed).toBe(false)
})
