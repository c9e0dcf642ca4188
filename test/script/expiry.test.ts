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
