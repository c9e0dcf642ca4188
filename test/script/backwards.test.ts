import { expect } from 'vitest'
import type { ModelLimit } from '../model/model.ts'
import { law } from '../support/law.ts'
import { costsAround, each, peek, reachState } from '../support/reached-state.ts'
import { useServer } from '../support/server.ts'

const server = useServer()

/** Peeks at one limit for each of several costs. */
async function peeks(row: ModelLimit, costs: number[], now: number) {
  const requests = costs.map((cost) => ({ mode: 'peek' as const, limits: [{ ...row, cost }] }))
  const reply = await server.decide(requests, now)
  return reply.states.map(([state]) => state!)
}

law(
  'If the clock moves back, remaining does not grow, and the wait of a refused request grows by the difference.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const costs = costsAround(row, await peek(server, row, now))
      const backs = [0, 1, 7, row.terms.windowMs].filter((back) => back <= now)
      const views = await Promise.all(backs.map((back) => peeks(row, costs, now - back)))
      const present = views[0]!
      views.forEach((past, view) => {
        const back = backs[view]!
        expect(past[0]!.remaining, story).toBeLessThanOrEqual(present[0]!.remaining)
        expect(past[0]!.resetAfterMs, story).toBeGreaterThanOrEqual(present[0]!.resetAfterMs)
        past.forEach(({ allowed, retryAfterMs }, index) => {
          const then = present[index]!
          if (!then.allowed) expect(retryAfterMs, story).toBe(then.retryAfterMs! + back)
          else if (!allowed) expect(retryAfterMs, story).toBeLessThanOrEqual(back)
        })
      })
    })
  },
  { mixed: { policies: 3, subjects: 2 } },
)
