import { expect } from 'vitest'
import type { ModelLimit } from '../model/model.ts'
import { law } from '../support/law.ts'
import { each, isReachable, peek, reachState, wouldAdmit } from '../support/reached-state.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const admits = (row: ModelLimit, cost: number, now: number) =>
  wouldAdmit(server, [{ ...row, cost }], now)

/** Each claim names a number of the reply that is exact: neither a unit nor a millisecond too small or too large. */
law(
  'A cost of `remaining` is admitted and one unit more is refused, the quota grows after next_after, and is whole after reset_after.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const whole = capacityOf(row.terms)
      const { remaining, nextAfterMs, resetAfterMs } = await peek(server, row, now)
      expect(remaining, story).toBeGreaterThanOrEqual(0)
      expect(remaining, story).toBeLessThanOrEqual(whole)
      const tried = await Promise.all([
        admits(row, remaining, now),
        admits(row, remaining + 1, now),
      ])
      expect(tried, `${remaining} of ${row.terms.tag} after${story}`).toEqual([true, false])

      expect(nextAfterMs === 0, story).toBe(remaining === whole)
      const next = now + nextAfterMs
      if (nextAfterMs > 0 && isReachable(next)) {
        const [then, before] = await Promise.all([
          peek(server, row, next),
          peek(server, row, next - 1),
        ])
        expect(then.remaining, story).toBeGreaterThan(remaining)
        expect(before.remaining, story).toBe(remaining)
      }

      const reset = now + resetAfterMs
      if (!isReachable(reset)) return
      const [then, untouched, all, before] = await Promise.all([
        peek(server, row, reset),
        peek(server, { ...row, subject: newSubject() }, reset),
        admits(row, whole, reset),
        resetAfterMs > 0 && admits(row, whole, reset - 1),
      ])
      expect(then, story).toEqual(untouched)
      expect([all, before], story).toEqual([true, false])
    })
  },
  { mixed: { policies: 3, subjects: 2 } },
)
