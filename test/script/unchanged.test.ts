import { expect } from 'vitest'
import type { ModelRequest } from '../model/model.ts'
import { law } from '../support/law.ts'
import { capacityOf } from '../support/play.ts'
import { useServer } from '../support/server.ts'
import { each, peek, settle } from '../support/settle.ts'
import { snapshot } from '../support/stored.ts'

const server = useServer()
const shapes = { single: { plans: 2 }, mixed: { policies: 3, subjects: 2, plans: 2 } }

law(
  'a refusal, a peek and a cost of 0 leave every byte and TTL as they were',
  async (plan) => {
    const { rows, now, keys, story } = await settle(server, plan)
    const before = await snapshot(server, keys)
    for (const time of [now, now + 1, Math.max(0, now - 1), now + rows[0]!.policy.windowMs]) {
      if (time > 2 ** 51) continue
      await each(rows, async (row) => {
        const { remaining } = await peek(server, row, time)
        const over = { ...row, cost: remaining + 1 }
        const others = rows.filter((other) => other !== row)
        const requests: ModelRequest[] = [
          { mode: 'take', rows: [over] },
          { mode: 'take', rows: [...others, over] },
          { mode: 'take', rows: [over, ...others] },
          { mode: 'take', rows: rows.map((one) => ({ ...one, cost: 0 })) },
          { mode: 'refund', rows: rows.map((one) => ({ ...one, cost: 0 })) },
          { mode: 'peek', rows: rows.map((one) => ({ ...one, cost: capacityOf(one.policy) })) },
        ]
        const reply = await server.decide(requests, time)
        const [alone, last, first] = reply.requests
        expect([alone, last, first].map((states) => states!.every((s) => s.allowed))).toEqual([
          false,
          false,
          false,
        ])
        for (const free of [...reply.requests[3]!, ...reply.requests[4]!]) {
          expect(free, story).toMatchObject({ allowed: true, retryAfterMs: 0 })
        }
      })
    }
    expect(await snapshot(server, keys), story).toEqual(before)
  },
  shapes,
)

law('the rows of a refused request tell how they stand uncharged', async (plan) => {
  const { rows, now, story } = await settle(server, plan)
  const refused = rows.map((row) => ({ ...row, cost: capacityOf(row.policy) + 1 }))
  const mixed = rows.map((row, index) => (index === 0 ? refused[0]! : row))
  const [looked, taken] = await Promise.all([
    server.decide([{ mode: 'peek', rows: mixed }], now),
    server.decide([{ mode: 'take', rows: mixed }], now),
  ])
  expect(taken, story).toEqual(looked)
})
