import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { keyOf, type ModelLimit, type ModelPolicy } from '../model/model.ts'
import { law, unchanging } from '../support/law.ts'
import { peek, reachState } from '../support/reached-state.ts'
import { algorithms } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { clock, read } from '../support/stored-state.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const room = 60_000

law('The PTTL of a key is the longest reset_after of its states plus one minute.', async (plan) => {
  const { limits, now, story } = await reachState(server, unchanging(plan))
  // Charge each limit once more, so that the key's expiry is set at the time of the peeks.
  const charges = limits.map((row) => ({ mode: 'take' as const, limits: [row] }))
  const [from, { states }, to] = await Promise.all([
    clock(server),
    server.decide(charges, now),
    clock(server),
  ])
  const charged = new Set(limits.filter((_, index) => states[index]![0]!.allowed).map(keyOf))
  for (const key of charged) {
    const held = limits.filter((row) => keyOf(row) === key)
    const peeks = await Promise.all(held.map((row) => peek(server, row, now)))
    const px = Math.max(...peeks.map(({ resetAfterMs }) => resetAfterMs)) + room
    const { expires } = await read(server, key)
    expect(expires - px, story).toBeGreaterThanOrEqual(from)
    expect(expires - px, story).toBeLessThanOrEqual(to)
  }
})

const briefly = (algorithm: ModelPolicy['algorithm'], windowMs: number): ModelLimit => {
  const policy = { tag: 't', algorithm, limit: 1, windowMs, burst: 1, align: 'clock' } as const
  return { subject: newSubject(), terms: policy, cost: 1 }
}

test.each(algorithms)(
  '%s: A call without a time is decided by the clock of Redis, and its key does not expire before its state.',
  async (name) => {
    const row = briefly(name, 3_600_000)
    const [from, { decidedAt: now, states }, expires, to] = await Promise.all([
      clock(server),
      server.decide([{ mode: 'take', limits: [row] }]),
      server.send('PEXPIRETIME', keyOf(row)).then(Number),
      clock(server),
    ])
    expect(now).toBeGreaterThanOrEqual(from)
    expect(now).toBeLessThanOrEqual(to)
    // Redis 7.0 counts the TTL from the write, later versions from the call.
    const runOut = now + states[0]![0]!.resetAfterMs
    expect(expires).toBeGreaterThanOrEqual(runOut)
    expect(expires).toBeLessThanOrEqual(runOut + to - from)
  },
)

test.each(algorithms)(
  '%s: Redis expires the key of a limit when the whole quota is available again.',
  async (name) => {
    const row = briefly(name, 40)
    await server.decide([{ mode: 'take', limits: [row] }])
    // Wait in real time, because the test is about Redis' expiry. All algorithms need at most two windows.
    await wait(100)
    expect(await server.send('EXISTS', keyOf(row))).toBe(0)
    const again = await server.decide([{ mode: 'take', limits: [row] }])
    expect(again.states[0]![0]!.allowed).toBe(true)
  },
)

const take = (...limits: ModelLimit[]) => server.decide([{ mode: 'take', limits }])
const rowOf = (subject: string, algorithm: ModelPolicy['algorithm']): ModelLimit => ({
  subject,
  terms: { tag: algorithm, algorithm, limit: 9, windowMs: 3_600_000, burst: 9, align: 'clock' },
  cost: 1,
})

test('Without a time, a charge that moves no run-out keeps the expiry, and another one moves it.', async () => {
  const [window, bucket] = [
    rowOf(newSubject(), 'sliding-window'),
    rowOf(newSubject(), 'token-bucket'),
  ]
  const expiry = (row: ModelLimit) => server.send('PEXPIRETIME', keyOf(row)).then(Number)
  await take(window, bucket)
  await server.send('PEXPIRE', keyOf(window), '123456')
  const kept = await expiry(window)
  // Twice, since the general script and a compiled one decide in turn.
  for (const units of [2, 3]) {
    await take(window)
    expect(await expiry(window)).toBe(kept)
    expect((await read(server, keyOf(window))).states[0]).toMatch(new RegExp(`:${units}:0$`))
  }
  for (const units of [2, 3]) {
    const { decidedAt, states } = await take(bucket)
    expect(states[0]![0]!.remaining).toBe(9 - units)
    expect(await expiry(bucket)).toBeGreaterThanOrEqual(decidedAt + states[0]![0]!.resetAfterMs)
  }
  // A charge of one limit that moves no run-out keeps the expiry of the whole record, and another limit moves it.
  const both = rowOf(window.subject, 'token-bucket')
  const first = await take(both, window)
  const longest = Math.max(...first.states[0]!.map(({ resetAfterMs }) => resetAfterMs))
  expect(await expiry(window)).toBeGreaterThanOrEqual(first.decidedAt + longest)
})

test('A state that ends within a second gets a new expiry, because its key might expire before the write.', async () => {
  const row = rowOf(newSubject(), 'fixed-window')
  const now = await clock(server)
  await server.send('SET', keyOf(row), `1;fixed-window:${now - 1000}:1900:1;`)
  await take(row)
  expect(Number(await server.send('PTTL', keyOf(row)))).toBeGreaterThan(0)
})

test('A write that keeps the expiry copies states that have run out, and the next other write drops them.', async () => {
  const row = rowOf(newSubject(), 'fixed-window')
  const now = await clock(server)
  await server.send('SET', keyOf(row), `1;old:1:1:1;fixed-window:${now}:60000:1;`, 'PX', '60000')
  await take(row)
  expect((await read(server, keyOf(row))).states).toContain('old:1:1:1')
  await take(rowOf(row.subject, 'token-bucket'))
  expect((await read(server, keyOf(row))).states.join()).not.toContain('old')
})
