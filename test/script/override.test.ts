import { expect, test } from 'vitest'
import type { StoreRequest } from '../../src/core/connection/store.ts'
import { type ModelLimit, type ModelPolicy, type ModelRequest, recordOf } from '../model/model.ts'
import * as one from '../support/ask.ts'
import { encode } from '../support/coding.ts'
import { law } from '../support/law.ts'
import { each, peek, reachState } from '../support/reached-state.ts'
import { kinds, type Schedule } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

// Use a separate Redis: one test counts its commands.
delete process.env.REDIS_URL
const server = useServer()
const now = one.start
const algorithms = kinds.filter((name) => name !== 'calendar')

/** A limit of 2 that operators may change. */
const rowOf = (terms: Partial<ModelPolicy> = {}, more: Partial<ModelLimit> = {}): ModelLimit => ({
  ...one.rowOf({ limit: 2, burst: 2, ...terms }),
  override: { share: 0, scalesBurst: true },
  ...more,
})

const ask = (mode: ModelRequest['mode'], row: ModelLimit, more: object = {}, at = now) =>
  one.ask(server, mode, row, at, more)
const set = (row: ModelLimit, units: number, forMs: number, at = now) =>
  ask('override', row, { units, forMs }, at)
const take = (row: ModelLimit, cost: number, at = now) => ask('take', { ...row, cost }, {}, at)
const stored = (row: ModelLimit) => server.send('GET', recordOf(row.subject))

test.each(algorithms)(
  '%s: The limit of an operator applies from its own call on, for its time to the millisecond.',
  async (algorithm) => {
    const row = rowOf({ algorithm, windowMs: 10_000 })
    expect(await take(row, 3)).toMatchObject({ allowed: false, retryAfterMs: null })
    const answer = await set(row, 5, 500)
    expect(answer).toMatchObject({ limit: 5, overriddenForMs: 500, remaining: 5 })
    expect(await take(row, 4)).toMatchObject({ allowed: true, limit: 5, remaining: 1 })
    expect(await peek(server, row, now + 499)).toMatchObject({ limit: 5, overriddenForMs: 1 })
    const after = await peek(server, row, now + 500)
    expect([after.limit, after.overriddenForMs, after.remaining]).toEqual([undefined, undefined, 0])
  },
)

test('A lower limit refuses at once, and a removed one admits again.', async () => {
  const row = rowOf({ limit: 100 })
  await take(row, 10)
  await set(row, 5, 500)
  expect(await take(row, 1)).toMatchObject({ allowed: false, limit: 5, remaining: 0 })
  expect(await ask('restore', row)).toMatchObject({ allowed: true, remaining: 90 })
  expect(await take(row, 90)).toMatchObject({ allowed: true, remaining: 0 })
})

test('A later limit replaces an earlier one, with its end.', async () => {
  const row = rowOf()
  await set(row, 5, 500)
  const answer = await set(row, 7, 100, now + 50)
  expect(answer).toMatchObject({ limit: 7, overriddenForMs: 100 })
  expect(await stored(row)).toBe(`1;t-limit:${now + 50}:100:7;`)
})

test('A record lives as long as a limit of an operator, whatever its counters do.', async () => {
  const row = rowOf({ windowMs: 50 })
  const ttl = () => server.send('PTTL', recordOf(row.subject)).then(Number)
  const call = (mode: ModelRequest['mode'], more: object = {}) =>
    server.decide([{ mode, limits: [row], ...more }])
  await call('override', { units: 5, forMs: 60_000 })
  expect(await ttl()).toBeGreaterThan(30_000)
  for (const mode of ['take', 'take', 'refund', 'refund', 'reset'] as const) {
    await call(mode)
    expect(await ttl(), mode).toBeGreaterThan(30_000)
    expect(await ttl(), mode).toBeLessThanOrEqual(60_000)
  }
  await call('restore')
  expect(await stored(row)).toBeNull()
})

test('A reset, a ban and its end keep the limit of an operator, which keeps bans and units.', async () => {
  const penalty = { tag: 'p', after: 1, withinMs: 1000, banMs: 1000, maxMs: 1000 }
  const row = rowOf({}, { penalty })
  await take(row, 2)
  await ask('ban', row)
  const banned = { allowed: false, bannedForMs: 1000 }
  expect(await set(row, 5, 9000)).toMatchObject({ ...banned, limit: 5, remaining: 3 })
  expect(await ask('restore', row)).toMatchObject({ ...banned, remaining: 0 })
  await set(row, 5, 9000)
  for (const mode of ['ban', 'unban', 'reset'] as const) {
    expect(await ask(mode, row), mode).toMatchObject({ limit: 5, overriddenForMs: 9000 })
  }
  expect(await stored(row)).toBe(`1;t-limit:${now}:9000:5;`)
})

test.each([
  ['fixed-window', 100, 0.55, true, 45, 55],
  ['sliding-log', 9, 0.2, true, 7, 2],
  ['token-bucket', 100, 0.55, true, 45, 55],
  ['token-bucket', 100, 0.5, false, 5, 5],
  ['concurrency', 10, 1, true, 0, 10],
] as const)(
  '%s with a limit of %d: The floor is the share %d of the new quota.',
  async (algorithm, units, share, scalesBurst, remaining, reserved) => {
    const floor = Math.ceil(share * 10)
    const row = rowOf(
      { algorithm, limit: 10, burst: 10 },
      { override: { share, scalesBurst }, floor },
    )
    await set(row, units, 500)
    expect(await peek(server, row, now)).toMatchObject({ limit: units, remaining, reserved })
    if (remaining > 0) expect((await take(row, remaining)).allowed).toBe(true)
    expect((await take(row, 1)).allowed).toBe(false)
  },
)

test('A limit above 2^31 is exact.', async () => {
  const row = rowOf({ windowMs: 1 })
  const units = 2 ** 51
  expect(await set(row, units, 500)).toMatchObject({ limit: units, remaining: units })
  const bucket = rowOf({ windowMs: 1, algorithm: 'token-bucket' })
  expect(await set(bucket, units, 500)).toMatchObject({ limit: units, remaining: units })
  expect(await take(bucket, units)).toMatchObject({ allowed: true, remaining: 0 })
  expect(await stored(bucket)).toContain(`;t:${now}:1:${units};`)
})

test.each([0, 0.55, 1])(
  'The largest limit of an operator is exact for a fixed window, and so is a floor of %d of it.',
  async (share) => {
    const units = 2 ** 53 - 1
    const row = rowOf({}, { override: { share, scalesBurst: false } })
    const { remaining, limit } = await set(row, units, 500)
    expect(limit).toBe(units)
    if (share === 0) expect(remaining).toBe(units)
    else expect(Math.abs(remaining - units * (1 - share))).toBeLessThan(10)
    expect((await take(row, remaining)).allowed).toBe(true)
    expect((await take(row, 1)).allowed).toBe(false)
  },
)

test('A bucket with a burst of its own keeps it, and gets the new rate.', async () => {
  const row = rowOf(
    { algorithm: 'token-bucket', limit: 1, burst: 2 },
    { override: { share: 0, scalesBurst: false } },
  )
  await set(row, 10, 5000)
  expect(await take(row, 2)).toMatchObject({ remaining: 0, resetAfterMs: 200, nextAfterMs: 100 })
  expect((await take(row, 1, now + 99)).allowed).toBe(false)
  expect((await take(row, 1, now + 100)).allowed).toBe(true)
})

test('The limits of a request have their own overrides, also beside penalties and other limits.', async () => {
  const penalty = { tag: 'p', after: 3, withinMs: 1000, banMs: 1000, maxMs: 1000 }
  const subject = newSubject()
  const [first, second, third] = ['a', 'b', 'c'].map((tag) =>
    rowOf({ tag }, { subject, penalty: { ...penalty, tag: `${tag}-p` } }),
  )
  const { override: _, ...plain } = second!
  await set(first!, 5, 500)
  await set(third!, 7, 600)
  const limits = [first!, plain, third!]
  const states = (await server.decide([{ mode: 'take', limits }], now)).states[0]!
  expect(states.map(({ limit, remaining }) => [limit, remaining])).toEqual([
    [5, 4],
    [undefined, 1],
    [7, 6],
  ])
})

test('An operator changes only limits with overrides of the named key.', async () => {
  const [row, other] = [rowOf(), rowOf()]
  await set(row, 5, 500)
  expect((await peek(server, other, now)).limit).toBeUndefined()
  const { override: _, ...plain } = row
  expect(await peek(server, plain, now)).toMatchObject({ remaining: 2 })
})

test('A repeated call gets the reply with the limit of the first.', async () => {
  const row = rowOf()
  await set(row, 5, 500)
  const once = { key: newSubject(), fingerprint: 'f', forMs: 1000 }
  const request: ModelRequest = { mode: 'take', limits: [row] }
  const first = await server.decide([request], now, once)
  await ask('restore', row)
  const again = await server.decide([request], now, once).catch((error) => String(error))
  expect(again).toEqual({ ...first, replayed: true })
})

test('A request whose limits have no overrides sends the same bytes as before.', () => {
  const { override: _, ...row } = rowOf({}, { subject: 's' })
  expect(encode([{ mode: 'take', limits: [row] } as StoreRequest])).toEqual({
    keys: ['sluice:1:{s}'],
    args: ['3::', 'take 1;t:fixed,2,1000,,1'],
  })
})

test('A decision with a limit of an operator costs no command more; a log reads its record.', async () => {
  const commands = (mode: ModelRequest['mode'], row: ModelLimit, more: object = {}) =>
    server.commands([{ mode, limits: [row], ...more }])
  const once = { evalsha: 1, time: 1, get: 1 }
  const row = rowOf({ limit: 1, windowMs: 60_000 })
  const change = { units: 5, forMs: 60_000 }
  expect(await commands('override', row, change)).toEqual({ ...once, set: 1 })
  expect(await commands('take', { ...row, cost: 5 })).toEqual({ ...once, set: 1 })
  expect(await commands('take', row)).toEqual(once)
  expect(await commands('peek', row)).toEqual(once)
  expect(await commands('restore', row)).toEqual({ ...once, set: 1 })
  expect(await commands('restore', row)).toEqual(once)
  const log = rowOf({ algorithm: 'sliding-log' })
  expect(await commands('peek', log)).toEqual({ ...once, zrevrange: 1 })
  const { override: _, ...plain } = log
  expect(await commands('peek', plain)).toEqual({ evalsha: 1, time: 1, zrevrange: 1 })
})

/** The schedule without limits of operators. */
const without = (plan: Schedule): Schedule => ({
  ...plan,
  steps: plan.steps.map((step) => ({
    ...step,
    requests: step.requests.map((ask) => ({
      ...ask,
      mode: ask.mode === 'override' || ask.mode === 'restore' ? 'peek' : ask.mode,
    })),
  })),
})

const shapes = {
  single: { overrides: true, plans: 1 },
  mixed: { overrides: true, policies: 3, subjects: 2, plans: 1 },
}

law(
  'With the limit of an operator, every answer is that of a plan with this limit, and without one that of the policy.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, without(plan))
    await each(limits, async (row) => {
      const units = Math.max(1, Math.floor(row.terms.limit / 2))
      const scalesBurst = row.terms.limit % 2 === 0
      const overridable = { ...row, override: { share: 0, scalesBurst } }
      expect(await peek(server, overridable, now), story).toEqual(await peek(server, row, now))
      const burst = scalesBurst ? units : row.terms.burst
      const planned = { ...row, terms: { ...row.terms, limit: units, burst } }
      const expected = await peek(server, planned, now)
      const forMs = 1000
      const answer = await ask('override', overridable, { units, forMs }, now)
      expect(answer, story).toEqual({ ...expected, limit: units, overriddenForMs: forMs })
      await ask('restore', overridable, {}, now)
    })
  },
  shapes,
)
