import { expect, test } from 'vitest'
import type { ReserveRule } from '../../src/core/config/schema/policy.ts'
import { start } from '../support/ask.ts'
import { clockedLimiter } from '../support/clocked-limiter.ts'
import { law } from '../support/law.ts'
import { each, isReachable, peek, reachState, wouldAdmit } from '../support/reached-state.ts'
import { capacityOf } from '../support/run-on-oracle.ts'
import { useServer } from '../support/server.ts'

const server = useServer()
const shapes = {
  single: { plans: 2, floors: true, debts: true },
  mixed: { policies: 3, subjects: 2, plans: 2, floors: true, debts: true },
}

law(
  'A request with a floor passes exactly when its cost and its floor fit together, and waits as long.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const whole = await peek(server, row, now)
      const capacity = capacityOf(row.terms)
      for (const floor of new Set([1, Math.ceil(capacity / 3), capacity])) {
        const cost = Math.max(1, whole.remaining - floor)
        const [some, together] = await Promise.all([
          peek(server, { ...row, cost, floor }, now),
          peek(server, { ...row, cost: cost + floor }, now),
        ])
        const { allowed, retryAfterMs, remaining, reserved, resetAfterMs } = some
        expect({ allowed, retryAfterMs }, story).toEqual({
          allowed: together.allowed,
          retryAfterMs: together.retryAfterMs,
        })
        expect({ remaining, reserved, resetAfterMs }, story).toEqual({
          remaining: Math.max(0, whole.remaining - floor),
          reserved: Math.min(floor, whole.remaining),
          resetAfterMs: whole.resetAfterMs,
        })
        if (allowed || retryAfterMs === null || !isReachable(now + retryAfterMs)) continue
        const tried = await Promise.all([
          wouldAdmit(server, [{ ...row, cost, floor }], now + retryAfterMs),
          wouldAdmit(server, [{ ...row, cost, floor }], now + retryAfterMs - 1),
        ])
        expect(tried, story).toEqual([true, false])
      }
    })
  },
  shapes,
)

law(
  'While a request with a floor is admitted, a request without one is never refused.',
  async (plan) => {
    const { limits, now, story } = await reachState(server, plan)
    await each(limits, async (row) => {
      const capacity = capacityOf(row.terms)
      for (const floor of [1, Math.ceil(capacity / 4), Math.ceil(capacity / 2)]) {
        const { states } = await server.decide(
          [
            { mode: 'take', limits: [{ ...row, cost: 1, floor }] },
            { mode: 'take', limits: [{ ...row, cost: floor }] },
          ],
          now,
        )
        const [below, above] = states.map(([state]) => state!.allowed)
        expect(!below || above, story).toBe(true)
      }
    })
  },
  shapes,
)

/** Numbers from 0 to 1 that are the same in each run (mulberry32). */
function randomFrom(seed: number) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

type Traffic = 'user' | 'prefetch'

/** Runs 10 s of random traffic on a quota of 100 requests a second. Returns the admitted share of each kind of traffic. */
async function run(algorithm: 'sliding-window' | 'token-bucket', reserve: ReserveRule[]) {
  const { clock, request } = clockedLimiter(server, {
    policies: [{ name: 'play', algorithm, limit: 400, window: '4s', key: 'global', reserve }],
  })
  const random = randomFrom(7)
  const seen = { user: { sent: 0, passed: 0 }, prefetch: { sent: 0, passed: 0 } }
  for (; clock.now < start + 10_000; clock.now += 10) {
    const rates: Record<Traffic, number> = {
      user: 60,
      prefetch: clock.now < start + 2_500 ? 20 : 240,
    }
    const sent = (['prefetch', 'user'] as const).flatMap((kind) =>
      Array.from({ length: Math.ceil(rates[kind] / 100) }, (_, index) => ({
        kind,
        chance: rates[kind] / 100 - index,
      })).filter(({ chance }) => random() < chance),
    )
    await Promise.all(
      sent.map(async ({ kind }) => {
        const { allowed } = await request({ 'x-kind': kind })
        seen[kind].sent += 1
        seen[kind].passed += Number(allowed)
      }),
    )
  }
  const shareOf = ({ sent, passed }: { sent: number; passed: number }) => passed / sent
  return { user: shareOf(seen.user), prefetch: shareOf(seen.prefetch) }
}

// https://netflixtechblog.com/enhancing-netflix-reliability-with-service-level-prioritized-load-shedding-e735e6ce8f7d
test.each(['sliding-window', 'token-bucket'] as const)(
  '%s: While prefetch requests rise twelvefold, more than 99.4% of the requests of users pass.',
  async (algorithm) => {
    const reserve = [{ match: { header: { 'x-kind': 'user' } }, share: 0 }, { share: 0.2 }]
    const kept = await run(algorithm, reserve)
    expect(kept.user).toBeGreaterThan(0.994)
    expect(kept.prefetch).toBeGreaterThan(0.05)
    expect(kept.prefetch).toBeLessThan(0.5)
    const open = await run(algorithm, [])
    expect(open.user).toBeLessThan(0.7)
  },
)
