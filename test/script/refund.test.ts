import { expect, test } from 'vitest'
import type { ModelRequest } from '../model/model.ts'
import { ask, rowOf } from '../support/ask.ts'
import { forward, inLine, law, unchanging } from '../support/law.ts'
import { each, peek, reachState } from '../support/reached-state.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { algorithms, type Counting, kinds } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()

/** Slots are released by their id, and values too: concurrency.test.ts and distinct.test.ts test that. */
const of = kinds.filter((kind) => kind !== 'concurrency' && kind !== 'distinct')

/** Returns the state before the request, the reply to it, and the state after it. */
async function around(request: ModelRequest, now: number) {
  const peeking: ModelRequest = { mode: 'peek', limits: request.limits }
  const { states } = await server.decide([peeking, request, peeking], now)
  return states.map(([state]) => state!)
}

law(
  'A refund never lowers remaining, never makes a wait longer, and never exceeds a full quota.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    for (const cost of [1, 3, 2 ** 53 - 1]) {
      await each(limits, async (row) => {
        const request: ModelRequest = { mode: 'refund', limits: [{ ...row, cost }] }
        const [before, reply, after] = await around(request, now)
        const { retryAfterMs, allowed, ...rest } = after!
        expect(reply, story).toEqual({ ...rest, allowed: true, retryAfterMs: 0 })
        expect(after!.remaining, story).toBeGreaterThanOrEqual(before!.remaining)
        expect(after!.remaining, story).toBeLessThanOrEqual(capacityOf(row.terms))
        expect(after!.resetAfterMs, story).toBeLessThanOrEqual(before!.resetAfterMs)
        if (retryAfterMs !== null && before!.retryAfterMs !== null) {
          expect(retryAfterMs, story).toBeLessThanOrEqual(before!.retryAfterMs)
        }
      })
    }
    // Everything is refunded now, except the previous count of a sliding window.
    await each(limits, async (row) => {
      if (row.terms.algorithm === 'sliding-window') return
      const untouched = await peek(server, { ...row, subject: newSubject() }, now)
      expect(await peek(server, row, now), story).toEqual(untouched)
    })
  },
  { of },
)

law(
  'A take that is refunded immediately leaves the limit as it was.',
  async (plan) => {
    // A caller whose clock is ahead can open a period before its start. A refund with a decidedAt from before the start
    // returns nothing, so all clocks of this law agree.
    const { limits, now, story } = await reachState(server, inLine(forward(unchanging(plan))))
    await each(limits, async (row) => {
      const { remaining } = await peek(server, row, now)
      const some = [{ ...row, cost: Math.ceil(remaining / 2) }]
      const peeking: ModelRequest = { mode: 'peek', limits: [row] }
      const { states } = await server.decide(
        [
          peeking,
          { mode: 'take', limits: some },
          { mode: 'refund', limits: some, decidedAt: now },
          peeking,
        ],
        now,
      )
      expect(states[3], story).toEqual(states[0])
    })
  },
  { of },
)

/** Ten units are taken at 5500 and two are refunded. The last column is the number of units that remain. */
const refunds: [Counting, at: number, decidedAt: number | undefined, number][] = [
  ['fixed-window', 5600, undefined, 2],
  ['fixed-window', 5600, 5500, 2],
  ['fixed-window', 5600, 5499, 0],
  ['fixed-window', 6499, 5500, 2],
  ['fixed-window', 6500, 5500, 10],
  ['sliding-window', 5600, undefined, 2],
  ['sliding-window', 5600, 5000, 2],
  ['sliding-window', 5600, 4999, 0],
  ['sliding-window', 6500, 5500, 5],
  ['sliding-log', 5600, undefined, 2],
  ['sliding-log', 5600, 5500, 2],
  ['sliding-log', 6499, 5499, 0],
  ['sliding-log', 6499, 5500, 2],
  ['token-bucket', 5600, undefined, 3],
  ['token-bucket', 5500, 5500, 2],
  ['token-bucket', 5500, 5400, 1],
  ['token-bucket', 5600, 5500, 2],
  ['token-bucket', 5500, 1, 0],
  ['token-bucket', 5500, 5900, 2],
]

test.each(refunds.filter(([name]) => algorithms.includes(name)))(
  '%s: After a refund of two units at %i with decidedAt %s, %i remain.',
  async (algorithm, now, decidedAt, remaining) => {
    const row = rowOf({ algorithm }, 2)
    await ask(server, 'take', { ...row, cost: 10 }, 5500)
    const more = decidedAt === undefined ? {} : { decidedAt }
    expect((await ask(server, 'refund', row, now, more)).remaining).toBe(remaining)
  },
)
