import { expect } from 'vitest'
import type { ModelRequest } from '../model/model.ts'
import { law } from '../support/law.ts'
import { each, peek, reachState } from '../support/reached-state.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { useServer } from '../support/server.ts'
import { snapshot } from '../support/stored-state.ts'

const server = useServer()
const shapes = { single: { plans: 2 }, mixed: { policies: 3, subjects: 2, plans: 2 } }

law(
  'A refusal, a peek and a cost of 0 change no byte and no TTL.',
  async (plan) => {
    const { limits, now, keys, story } = await reachState(server, plan)
    const before = await snapshot(server, keys)
    for (const time of [now, now + 1, Math.max(0, now - 1), now + limits[0]!.terms.windowMs]) {
      if (time > 2 ** 51) continue
      await each(limits, async (row) => {
        const { remaining } = await peek(server, row, time)
        const over = { ...row, cost: remaining + 1 }
        const others = limits.filter((other) => other !== row)
        const requests: ModelRequest[] = [
          { mode: 'take', limits: [over] },
          { mode: 'take', limits: [...others, over] },
          { mode: 'take', limits: [over, ...others] },
          { mode: 'take', limits: limits.map((one) => ({ ...one, cost: 0 })) },
          { mode: 'refund', limits: limits.map((one) => ({ ...one, cost: 0 })) },
          { mode: 'peek', limits: limits.map((one) => ({ ...one, cost: capacityOf(one.terms) })) },
        ]
        const reply = await server.decide(requests, time)
        const [alone, last, first] = reply.states
        expect([alone, last, first].map((states) => states!.every((s) => s.allowed))).toEqual([
          false,
          false,
          false,
        ])
        for (const free of [...reply.states[3]!, ...reply.states[4]!]) {
          expect(free, story).toMatchObject({ allowed: true, retryAfterMs: 0 })
        }
      })
    }
    expect(await snapshot(server, keys), story).toEqual(before)
  },
  shapes,
)

law('The limits of a refused request report their uncharged state.', async (plan) => {
  const { limits, now, story } = await reachState(server, plan)
  const refused = limits.map((row) => ({ ...row, cost: capacityOf(row.terms) + 1 }))
  const mixed = limits.map((row, index) => (index === 0 ? refused[0]! : row))
  const [peeked, taken] = await Promise.all([
    server.decide([{ mode: 'peek', limits: mixed }], now),
    server.decide([{ mode: 'take', limits: mixed }], now),
  ])
  expect(taken, story).toEqual(peeked)
})
