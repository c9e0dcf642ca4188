import { expect } from 'vitest'
import type { ModelLimit } from '../model/model.ts'
import { law, lawRuns, property } from '../support/law.ts'
import {
  costsAround,
  each,
  isReachable,
  peek,
  reachState,
  wouldAdmit,
} from '../support/reached-state.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { kinds, schedule } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
law(
  'A refused cost fits after exactly retry_after, and not a millisecond earlier, and one above the capacity never fits.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    const probe = async (row: ModelLimit, cost: number) => {
      const { allowed, retryAfterMs } = await peek(server, { ...row, cost }, now)
      expect(retryAfterMs === 0, story).toBe(allowed)
      const then = now + retryAfterMs!
      if (!isReachable(then)) return
      const tried = await Promise.all([
        wouldAdmit(server, [{ ...row, cost }], then),
        !allowed && wouldAdmit(server, [{ ...row, cost }], then - 1),
      ])
      expect(tried, `${cost} of ${row.terms.tag} after${story}`).toEqual([true, false])
    }
    await each(limits, async (row) => {
      const costs = costsAround(row, await peek(server, row, now))
      await Promise.all(costs.map((cost) => probe(row, cost)))
      const over = { ...row, cost: capacityOf(row.terms) + 1 }
      const { allowed, retryAfterMs, resetAfterMs } = await peek(server, over, now)
      expect({ allowed, retryAfterMs }, story).toEqual({ allowed: false, retryAfterMs: null })
      if (!isReachable(now + resetAfterMs)) return
      expect(await wouldAdmit(server, [over], now + resetAfterMs), story).toBe(false)
    })
  },
  { single: { plans: 2 }, mixed: { policies: 3, subjects: 2, plans: 2 } },
)

property(
  'A request is admitted after exactly the longest retry_after of its limits, and not a millisecond earlier.',
  schedule(kinds, { policies: 3, subjects: 2, plans: 2, requests: 4 }),
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    const rows = limits.map((row, index) => {
      const capacity = capacityOf(row.terms)
      return { ...row, cost: index % 2 === 0 ? capacity : Math.ceil(capacity / 2) }
    })
    const reply = await server.decide([{ mode: 'peek', limits: rows }], now)
    const wait = Math.max(...reply.states[0]!.map(({ retryAfterMs }) => retryAfterMs!))
    if (!isReachable(now + wait)) return
    const tried = await Promise.all([
      wouldAdmit(server, rows, now + wait),
      wait > 0 && wouldAdmit(server, rows, now + wait - 1),
    ])
    expect(tried, story).toEqual([true, false])
  },
  lawRuns,
)
