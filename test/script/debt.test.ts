import { expect, test } from 'vitest'
import type { ModelLimit, ModelRequest } from '../model/model.ts'
import * as one from '../support/ask.ts'
import { law } from '../support/law.ts'
import { each, isReachable, peek, reachState, wouldAdmit } from '../support/reached-state.ts'
import { algorithms, type Counting, kinds } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
const of = kinds.filter((kind) => kind !== 'concurrency' && kind !== 'distinct')
const ask = (mode: ModelRequest['mode'], row: ModelLimit, cost: number, now: number) =>
  one.ask(server, mode, { ...row, cost }, now)

law(
  'A debt is never refused, and a refused cost fits exactly after the wait that follows it.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const before = await peek(server, row, now)
      // A long log takes long, and a test below has the longest.
      const large = row.terms.algorithm === 'sliding-log' ? 50 : 2 ** 51
      for (const cost of [1, before.remaining + 1, large]) {
        const owed = await ask('debt', row, cost, now)
        expect(owed, story).toMatchObject({ allowed: true, retryAfterMs: 0 })
        const { allowed, retryAfterMs, ...rest } = await peek(server, row, now)
        expect(owed, story).toMatchObject(rest)
        if (allowed || !isReachable(now + retryAfterMs!)) continue
        const tried = await Promise.all([
          wouldAdmit(server, [row], now + retryAfterMs!),
          wouldAdmit(server, [row], now + retryAfterMs! - 1),
        ])
        expect(tried, story).toEqual([true, false])
      }
    })
  },
  { of, single: { plans: 2, debts: true }, mixed: { policies: 3, debts: true } },
)

/** Eight units are taken at 5500, and a debt of 12 follows at 5600. */
const waits: [Counting, retryAfterMs: number, resetAfterMs: number][] = [
  ['fixed-window', 900, 900], // until the end of the window
  ['sliding-window', 950, 1400], // in the next window, the 20 units count as 9 at 6550
  ['sliding-log', 1000, 1000], // 11 units must expire, and the debt has the last three of them
  ['token-bucket', 1000, 1900], // 19 tokens are missing, and one flows back every 100 ms
]

test.each(waits)(
  '%s: After a debt, one unit fits in %i ms, and the whole quota in %i ms.',
  async (algorithm, retryAfterMs, resetAfterMs) => {
    const row = one.rowOf({ algorithm })
    expect(await ask('take', row, 8, 5500)).toMatchObject({ allowed: true, remaining: 2 })
    expect(await ask('debt', row, 12, 5600)).toMatchObject({ allowed: true, remaining: 0 })
    const after = await ask('take', row, 1, 5600)
    expect(after).toMatchObject({ allowed: false, remaining: 0, retryAfterMs, resetAfterMs })
  },
)

test.each(algorithms)('%s: A refund after a debt returns its units.', async (algorithm) => {
  const row = one.rowOf({ algorithm })
  await ask('debt', row, 15, 5500)
  expect((await ask('refund', row, 3, 5500)).remaining).toBe(0)
  expect((await ask('refund', row, 5, 5500)).remaining).toBe(3)
})

test.each(algorithms.filter((name) => name !== 'sliding-log'))(
  '%s: Debts add up to what the algorithm counts exactly.',
  async (algorithm) => {
    const row = one.rowOf({ algorithm })
    const most = Math.floor(2 ** 53 / 3)
    for (let debts = 0; debts < 5; debts++) await ask('debt', row, 2 ** 51, 5500)
    const { resetAfterMs } = await ask('peek', row, 1, 5500)
    const stored = String(await server.send('GET', `sluice:1:{${row.subject}}`))
    const [, units] = /^1;t:\d+:\d+:(\d+)/.exec(stored)!
    if (algorithm === 'token-bucket') {
      expect(Number(units)).toBe(most)
      expect(resetAfterMs).toBe(Math.ceil(most / 10))
    } else {
      const isFixed = algorithm === 'fixed-window'
      expect(Number(units)).toBe(isFixed ? 2 ** 53 - 1 : Math.floor(most / 1000))
    }
  },
)

test('A sliding log has at most 10,000 entries after a debt.', async () => {
  const row = one.rowOf({ algorithm: 'sliding-log' })
  await ask('take', row, 3, 5500)
  for (const cost of [6000, 6000, 2 ** 51]) await ask('debt', row, cost, 5600)
  expect(await server.send('ZCARD', `sluice:1:{${row.subject}}:log:t`)).toBe(10_000)
  expect(await ask('take', row, 1, 5600)).toMatchObject({ allowed: false, retryAfterMs: 1000 })
})

test('A debt charges each of its limits, and a take after it in the same call is still refused.', async () => {
  const [full, empty] = [one.rowOf(), one.rowOf({ algorithm: 'token-bucket' })]
  await ask('take', full, 10, 5500)
  const limits = [{ ...full, cost: 4 }, empty]
  const { states } = await server.decide(
    [
      { mode: 'debt', limits },
      { mode: 'take', limits: [{ ...full, cost: 1 }] },
      { mode: 'take', limits: [{ ...empty, cost: 10 }] },
      { mode: 'take', limits: [{ ...empty, cost: 9 }] },
    ],
    5500,
  )
  expect(states.map((some) => some.map(({ allowed }) => allowed))).toEqual([
    [true, true],
    [false],
    [false],
    [true],
  ])
})

test('A follow after a debt charges nothing.', async () => {
  const [row, other] = [one.rowOf(), one.rowOf()]
  await server.decide(
    [
      { mode: 'debt', limits: [row] },
      { mode: 'follow', limits: [other] },
    ],
    5500,
  )
  expect(await ask('peek', other, 1, 5500)).toMatchObject({ remaining: 10 })
})

test('A debt is charged during a ban, and does not count as a refusal.', async () => {
  const penalty = { after: 2, withinMs: 60_000, banMs: 60_000, maxMs: 60_000 }
  const row = one.rowOf({ penalty })
  for (const cost of [15, 15]) await ask('debt', row, cost, 5500)
  expect(await ask('take', row, 1, 5500)).not.toHaveProperty('bannedForMs')
  expect(await ask('take', row, 1, 5500)).toHaveProperty('bannedForMs', 60_000)
  await ask('debt', row, 5, 5500)
  expect(String(await server.send('GET', `sluice:1:{${row.subject}}`))).toContain(':1000:35;')
})

test('A debt of slots is not sent.', async () => {
  const row = one.rowOf({ algorithm: 'concurrency' })
  await expect(ask('debt', row, 1, 5500)).rejects.toMatchObject({
    code: 'internal',
    cause: 'ERR sluice: request 1: unexpected algorithm of a debt',
  })
})

test('A debt of a record is one SET, and one that changes nothing writes nothing.', async () => {
  const row = one.rowOf()
  await ask('debt', row, 2 ** 53 - 1, 5500)
  const before = await server.send('GET', `sluice:1:{${row.subject}}`)
  await ask('debt', row, 1, 5500)
  expect(await server.send('GET', `sluice:1:{${row.subject}}`)).toBe(before)
})
