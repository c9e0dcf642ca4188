import { expect } from 'vitest'
import type { ModelLimit } from '../model/model.ts'
import { law } from '../support/law.ts'
import { each, isReachable, peek, reachState, wouldAdmit } from '../support/reached-state.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const shapes = { mixed: { policies: 3, subjects: 2 } }

const admits = (row: ModelLimit, cost: number, now: number) =>
  wouldAdmit(server, [{ ...row, cost }], now)

law(
  'A cost of `remaining` is admitted, and a cost of one unit more is refused.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const { remaining } = await peek(server, row, now)
      expect(remaining, story).toBeGreaterThanOrEqual(0)
      expect(remaining, story).toBeLessThanOrEqual(capacityOf(row.terms))
      const tried = await Promise.all([
        admits(row, remaining, now),
        admits(row, remaining + 1, now),
      ])
      expect(tried, `${remaining} of ${row.terms.tag} after${story}`).toEqual([true, false])
    })
  },
  shapes,
)

law(
  'The remaining quota grows after exactly next_after, and not a millisecond earlier.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const { remaining, nextAfterMs } = await peek(server, row, now)
      if (remaining === capacityOf(row.terms)) {
        expect(nextAfterMs, story).toBe(0)
        return
      }
      expect(nextAfterMs, story).toBeGreaterThan(0)
      if (!isReachable(now + nextAfterMs)) return
      const [then, before] = await Promise.all([
        peek(server, row, now + nextAfterMs),
        peek(server, row, now + nextAfterMs - 1),
      ])
      expect(then.remaining, story).toBeGreaterThan(remaining)
      expect(before.remaining, story).toBe(remaining)
    })
  },
  shapes,
)

law(
  'The whole quota is available after exactly reset_after, and not a millisecond earlier.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const whole = { ...row, cost: capacityOf(row.terms) }
      const { resetAfterMs } = await peek(server, whole, now)
      const reset = now + resetAfterMs
      if (!isReachable(reset)) return
      const [then, untouched, all, before] = await Promise.all([
        peek(server, whole, reset),
        peek(server, { ...whole, subject: newSubject() }, reset),
        admits(row, whole.cost, reset),
        resetAfterMs > 0 && admits(row, whole.cost, reset - 1),
      ])
      expect(then, story).toEqual(untouched)
      expect([all, before], story).toEqual([true, false])
    })
  },
  shapes,
)
