/** Floors and debts in the local store. */
import { expect, test } from 'vitest'
import type { StoreRequest } from '../../../../src/core/connection/store.ts'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { policyOf } from '../../../support/local.ts'

const start = 1_789_000_000_000
const names = ['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket'] as const

function client(options: Parameters<typeof policyOf>[0]) {
  let now = start
  const local = createLocalStore(() => now)
  const terms = policyOf({ limit: 10, window: '10s', ...options })
  const limitOf = (cost: number, floor: number) => ({ subject: 'x', terms, cost, floor })
  return {
    local,
    limitOf,
    later: (ms: number) => (now += ms),
    async ask(mode: 'take' | 'peek' | 'debt', cost: number, floor = 0) {
      const request: StoreRequest = { mode, limits: [limitOf(cost, floor)] }
      return (await local.decide([request])).states[0]![0]!
    },
    async refund(units: number) {
      const limits = [limitOf(units, 0)]
      return (await local.decide([{ mode: 'refund', limits, decidedAt: now }])).states[0]![0]!
    },
  }
}

test.each(names)('%s: The local store keeps the floor of a request free.', async (algorithm) => {
  const { ask } = client({ algorithm })
  for (let unit = 1; unit <= 8; unit++) expect((await ask('take', 1, 2)).allowed).toBe(true)
  expect(await ask('take', 1, 2)).toMatchObject({ allowed: false, remaining: 0 })
  expect(await ask('take', 2)).toMatchObject({ allowed: true, remaining: 0 })
  expect(await ask('take', 9, 2)).toMatchObject({ allowed: false, retryAfterMs: null })
})

test('The floor is part of the share of an isolate.', async () => {
  const { ask } = client({ localShare: 0.5 })
  for (let unit = 1; unit <= 4; unit++) expect((await ask('take', 1, 2)).allowed).toBe(true)
  expect((await ask('take', 1, 2)).allowed).toBe(false)
  expect((await ask('take', 1)).allowed).toBe(true)
  expect((await ask('take', 1)).allowed).toBe(false)
})

test.each(names)(
  '%s: After a reply to a request with a floor, the local store admits what the store had left.',
  async (algorithm) => {
    const { local, limitOf, ask } = client({ algorithm })
    const waits = { resetAfterMs: 10_000, nextAfterMs: 4_000 }
    const state = { allowed: false, remaining: 0, reserved: 1, retryAfterMs: 4_000, ...waits }
    local.learn(limitOf(1, 2), state, start, start)
    expect((await ask('take', 1, 2)).allowed).toBe(false)
    expect((await ask('take', 1, 3)).allowed).toBe(false)
    expect((await ask('take', 1)).allowed).toBe(true)
    expect((await ask('take', 1)).allowed).toBe(false)
  },
)

test.each(names)('%s: A debt may exceed the limit in the local store.', async (algorithm) => {
  const { ask, refund, later } = client({ algorithm })
  await ask('take', 4, 0)
  expect(await ask('debt', 9)).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 0 })
  expect(await ask('take', 1)).toMatchObject({ allowed: false })
  expect((await refund(3)).remaining).toBe(0)
  expect((await refund(2)).remaining).toBe(2)
  await ask('debt', 2 ** 51)
  const { retryAfterMs } = await ask('peek', 1)
  later(retryAfterMs! - 1)
  expect((await ask('peek', 1)).allowed).toBe(false)
  later(1)
  expect((await ask('peek', 1)).allowed).toBe(true)
})

test.each([10_000_000, 100_000_000_000, 2 ** 53 - 1])(
  'A fixed window of %d units, a refund and debts of any size are exact in the local store.',
  async (limit) => {
    const { ask, refund } = client({ algorithm: 'fixed-window', limit, window: '31d' })
    expect(await ask('take', limit - 1)).toMatchObject({ allowed: true, remaining: 1 })
    expect(await ask('take', 2)).toMatchObject({ allowed: false, remaining: 1 })
    expect((await refund(limit - 1)).remaining).toBe(limit)
    for (let debts = 0; debts < 3; debts++) await ask('debt', 2 ** 53 - 1)
    expect(await ask('peek', 1)).toMatchObject({ allowed: false, remaining: 0 })
    expect((await refund(2 ** 53 - 2)).remaining).toBe(limit - 1)
  },
)
