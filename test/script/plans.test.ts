/** Tests several plans on one key, and refunds to a bucket that has filled up since the charge. */
import { expect, test } from 'vitest'
import type { ModelPolicy, ModelRequest } from '../model/model.ts'
import { ask as askOf, policyOf, rowOf, start } from '../support/ask.ts'
import { clockedLimiter } from '../support/clocked-limiter.ts'
import { useServer } from '../support/server.ts'

const server = useServer()

const bucket = (limit: number) =>
  policyOf({ algorithm: 'token-bucket', limit, windowMs: 60_000, burst: limit })
const [large, small] = [bucket(1000), bucket(10)]

/** Takes units of one limit and counts those that were admitted. */
function client() {
  const row = rowOf()
  let passed = 0
  const ask = async (
    mode: ModelRequest['mode'],
    terms: ModelPolicy,
    cost: number,
    at: number,
    more: Partial<ModelRequest> = {},
  ) => {
    const state = await askOf(server, mode, { ...row, terms, cost }, start + at, more)
    if (mode === 'take' && state.allowed) passed += cost
    return state
  }
  /** Takes all remaining units. */
  const drain = async (policy: ModelPolicy, at: number) => {
    const { remaining } = await ask('peek', policy, 0, at)
    return ask('take', policy, remaining, at)
  }
  return { ask, drain, passed: () => passed }
}

test('The token bucket of a large plan does not become full when the bucket of a small plan is full again.', async () => {
  const { ask, drain, passed } = client()
  let at = 0
  while (at < 60_000) {
    await drain(large, at)
    at += 660 // eleven units of the large plan
    await ask('take', large, 1, at)
    const { resetAfterMs } = await ask('take', small, 1, at)
    at += resetAfterMs
  }
  expect(passed()).toBeLessThanOrEqual(1000 + (1000 * at) / 60_000)
})

test('Charges under a small plan delay the time at which the token bucket of a large plan is full.', async () => {
  const { ask, passed } = client()
  const half = bucket(500)
  // Each plan takes half of its bucket, and by itself would be full again 30 s later.
  for (let at = 0; at < 300_000; at += 30_000) {
    await ask('take', large, 500, at)
    await ask('take', half, 250, at)
  }
  const { remaining } = await ask('peek', large, 0, 300_000)
  expect(passed() + remaining).toBeLessThanOrEqual(1000 + 5 * 1000)
})

test('A charge and its refund under a small plan do not fill the token bucket of a large plan.', async () => {
  const { ask } = client()
  await ask('take', large, 5, 0)
  await ask('take', small, 5, 0)
  expect(await ask('refund', small, 5, 0, { decidedAt: start })).toMatchObject({ remaining: 5 })
  expect(await ask('peek', large, 1000, 0)).toMatchObject({ remaining: 995, resetAfterMs: 300 })
})

test('Units taken from a token bucket under one plan count under every other plan.', async () => {
  const { drain, ask } = client()
  await drain(small, 0)
  expect(await ask('peek', large, 1, 0)).toMatchObject({ remaining: 990, resetAfterMs: 600 })
  await ask('take', large, 500, 0)
  // The wait ends with the run-out of the state, which depends on the rate of the last charge.
  expect(await ask('peek', small, 1, 0)).toMatchObject({ remaining: 0, retryAfterMs: 30_600 })
})

test('A refund under a small plan returns no more than its units to the token bucket of a large plan.', async () => {
  const { ask } = client()
  await ask('take', large, 990, 0)
  expect(await ask('refund', small, 10, 0)).toMatchObject({ remaining: 0 })
  expect(await ask('peek', large, 1000, 0)).toMatchObject({ remaining: 20, resetAfterMs: 58_800 })
})

test('A refund returns nothing if its units have already flowed back.', async () => {
  const policy = bucket(10)
  const { ask, passed } = client()
  await ask('take', policy, 10, 0)
  await ask('take', policy, 10, 60_000)
  expect(await ask('refund', policy, 10, 63_000, { decidedAt: start })).toMatchObject({
    remaining: 0,
  })
  for (let at = 66_000; at < 120_000; at += 6000) {
    expect(await ask('take', policy, 2, at)).toMatchObject({ allowed: false, remaining: 1 })
    await ask('take', policy, 1, at)
  }
  expect(passed() - 10).toBe(19)
})

test('A refund leaves out the parts that have flowed back since its decidedAt.', async () => {
  const policy = bucket(10)
  const { ask } = client()
  await ask('take', policy, 10, 0)
  // Four units have flowed back in 24 s, so one of the five units is returned.
  await ask('take', policy, 4, 24_000)
  expect(await ask('refund', policy, 5, 24_000, { decidedAt: start })).toMatchObject({
    remaining: 1,
  })
  // Without a decidedAt the refund returns all units.
  expect(await ask('refund', policy, 5, 24_000)).toMatchObject({ remaining: 6 })
})

test('A late refund under a small plan keeps the bound of the large plan that was charged.', async () => {
  const { ask, drain, passed } = client()
  await drain(large, 0)
  await drain(large, 60_000)
  await ask('refund', small, 1000, 60_000, { decidedAt: start })
  for (let at = 60_000; at < 120_000; at += 1200) await drain(large, at)
  // The refunded units passed before this window.
  expect(passed() - 1000).toBeLessThanOrEqual(2000)
})

test('A refund under a small plan returns nothing to a bucket that a larger plan has charged, unless it has no decidedAt.', async () => {
  const { ask } = client()
  await ask('take', large, 500, 0)
  await ask('refund', small, 500, 600, { decidedAt: start })
  expect(await ask('peek', large, 0, 600)).toMatchObject({ remaining: 510 })
  await ask('refund', large, 400, 600, { decidedAt: start })
  expect(await ask('peek', large, 0, 600)).toMatchObject({ remaining: 900 })
  await ask('refund', small, 50, 600)
  expect(await ask('peek', large, 0, 600)).toMatchObject({ remaining: 950 })
})

test('A client that sends its plan with only some requests gets no more than the bound of its largest plan.', async () => {
  const policy = {
    name: 'all',
    algorithm: 'token-bucket',
    limit: 10,
    limits: { pro: 200 },
    plan: 'header:x-plan',
    window: '10s',
    key: 'ip',
  } as const
  const { clock, request } = clockedLimiter(server, { policies: [policy] })
  const pro = { 'x-plan': 'pro' }
  let passed = 0
  while (clock.now < start + 20_000) {
    while ((await request(pro)).allowed) passed += 1
    clock.now += 550 // eleven units
    passed += Number((await request(pro)).allowed)
    const { allowed, limits } = await request()
    passed += Number(allowed)
    clock.now += limits[0]!.resetAfterMs
  }
  expect(passed).toBeGreaterThan(200)
  expect(passed).toBeLessThanOrEqual(200 + (200 * (clock.now - start)) / 10_000)
})
