import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ModelPolicy } from '../model.ts'
import { property } from './law.ts'
import { algorithms, type Counting } from './schedules.ts'
import { useServer } from './server.ts'
import { newSubject } from './subjects.ts'

const server = useServer()

/** The most that passes in any half-open interval of one window's length (ALGORITHMS.md); what flows, flows for a millisecond less. */
const bounds: Record<Counting, (policy: ModelPolicy) => number> = {
  'fixed-window': ({ limit }) => 2 * limit,
  'sliding-window': ({ limit }) => 2 * limit - 1,
  'sliding-log': ({ limit }) => limit,
  'token-bucket': ({ burst, limit }) => burst + limit - 1,
  gcra: ({ burst, limit }) => burst + limit - 1,
}

interface Event {
  /** ms since the event before; below 0 the clock has gone back. */
  wait: number
  /** Below 0 units are given back. */
  cost: number
}

/** Small quotas under pressure, so that the bound is in reach. */
const pressure = (algorithm: Counting, least: { wait: number; cost: number }) =>
  fc
    .record({
      limit: fc.integer({ min: 1, max: 8 }),
      windowMs: fc.integer({ min: 1, max: 40 }),
      burst: fc.integer({ min: 1, max: 8 }),
      align: fc.constantFrom('first-request' as const, 'clock' as const),
    })
    .chain((terms) => {
      const wait = fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 0, max: 4 }) },
        { weight: 2, arbitrary: fc.integer({ min: 0, max: terms.windowMs }) },
        { weight: 1, arbitrary: fc.integer({ min: least.wait * terms.windowMs, max: 0 }) },
      )
      const cost = fc.oneof(fc.constant(1), fc.integer({ min: least.cost, max: 4 }))
      const events = { minLength: 1, maxLength: 60, size: 'max' } as const
      return fc.record({
        policy: fc.constant({ ...terms, tag: 't', algorithm }),
        events: fc.array(fc.record({ wait, cost }), events),
      })
    })

/** What was really taken and given back, each at the latest time at which anything was taken. */
async function history(policy: ModelPolicy, events: Event[]) {
  const subject = newSubject()
  let now = 1_789_000_000_000
  const calls = events.map(({ wait, cost }) => {
    now += wait
    const rows = [{ subject, policy, cost: Math.abs(cost) }]
    const mode = cost < 0 ? ('give-back' as const) : ('take' as const)
    return {
      now,
      cost,
      requests: [
        { mode: 'look' as const, rows },
        { mode, rows },
      ],
    }
  })
  const replies = await Promise.all(calls.map(({ requests, now }) => server.decide(requests, now)))
  let time = 0
  return calls.flatMap(({ now, cost }, index) => {
    const [before, after] = replies[index]!.requests.map(([state]) => state!)
    if (!after!.allowed) return []
    if (cost > 0) time = Math.max(time, now)
    // Of a give-back only what it changed counts: the rest was dropped.
    return [{ time, units: cost > 0 ? cost : before!.remaining - after!.remaining }]
  })
}

async function keepsBound({ policy, events }: { policy: ModelPolicy; events: Event[] }) {
  const bound = bounds[policy.algorithm as Counting](policy)
  const charges = await history(policy, events)
  for (const { time: start } of charges) {
    const within = charges.filter(({ time }) => start <= time && time < start + policy.windowMs)
    const sum = within.reduce((sum, { units }) => sum + units, 0)
    expect(sum, JSON.stringify(charges)).toBeLessThanOrEqual(bound)
  }
}

for (const name of algorithms) {
  property(
    `${name}: no interval admits more than the bound, however the clock goes back`,
    pressure(name, { wait: -1, cost: 1 }),
    keepsBound,
  )
  property(
    `${name}: no interval admits more than the bound and what was given back in it`,
    pressure(name, { wait: 0, cost: -4 }),
    keepsBound,
  )
}

const steadily = Array.from({ length: 10 }, (_, index) => index * 100)

/** Limit 10 per 1000 ms, burst 5. */
const worst: [Counting, at: number[], passed: number][] = [
  ['fixed-window', [999, 1000, 1998], 20],
  ['sliding-window', [999, 1998], 19],
  ['sliding-log', [0, 500, 999], 10],
  // The fifteenth comes with the end of the interval, which is not in it.
  ['token-bucket', steadily, 14],
  ['gcra', steadily, 14],
]

test.each(worst.filter(([name]) => algorithms.includes(name)))(
  '%s: one unit at a time, taken at %j, the bound is reached',
  async (algorithm, at, passed) => {
    const policy = {
      tag: 't',
      limit: 10,
      windowMs: 1000,
      burst: 5,
      align: 'clock',
      algorithm,
    } as const
    const one = { mode: 'take' as const, rows: [{ subject: newSubject(), policy, cost: 1 }] }
    const burst = Array<typeof one>(20).fill(one)
    const replies = await Promise.all(at.map((now) => server.decide(burst, now)))
    const states = replies.flatMap(({ requests }) => requests.flat())
    expect(states.filter(({ allowed }) => allowed).length).toBe(passed)
  },
)
