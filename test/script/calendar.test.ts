import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Model, type ModelLimit, type ModelRequest } from '../model/model.ts'
import { ask, policyOf, rowOf } from '../support/ask.ts'
import { periodOf } from '../support/complete-limit.ts'
import { property } from '../support/law.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'

const server = useServer()
const policy = policyOf({ limit: 3, windowMs: 86_400_000, align: 'clock' })

type Period = NonNullable<ModelLimit['period']>

/** A client whose clock may differ from Redis' clock. */
function client() {
  const row = rowOf(policy)
  const model = new Model()
  return async (mode: ModelRequest['mode'], now: number, period: Period, cost = 1) => {
    const limits = [{ ...row, period, cost }]
    const reply = await server.decide([{ mode, limits }], now)
    expect(reply).toEqual(model.decide([{ mode, limits }], now))
    return reply.states[0]![0]!
  }
}

const hours = 3_600_000
const days = 24 * hours

/** A period between two local midnights, and the length of the next one. */
const calendars: [claim: string, start: string, end: string, length: number, next: number][] = [
  [
    'the day before the clocks go forward, with a next period of 23 hours',
    '2026-03-28T00:00:00+01:00',
    '2026-03-29T00:00:00+01:00',
    24 * hours,
    23 * hours,
  ],
  [
    'the day of 25 hours on which the clocks go back',
    '2026-10-25T00:00:00+02:00',
    '2026-10-26T00:00:00+01:00',
    25 * hours,
    24 * hours,
  ],
  [
    'the day of 24.5 hours on Lord Howe Island',
    '2026-04-05T00:00:00+11:00',
    '2026-04-06T00:00:00+10:30',
    24.5 * hours,
    24 * hours,
  ],
  [
    'a week that is an hour shorter',
    '2026-03-23T00:00:00+01:00',
    '2026-03-30T00:00:00+02:00',
    7 * days - hours,
    7 * days,
  ],
  ['January and February', '2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z', 31 * days, 28 * days],
]

test.each(calendars)(
  'A count ends with its calendar period: %s.',
  async (_, from, to, length, next) => {
    const [start, end] = [Date.parse(from), Date.parse(to)]
    const nextEnd = end + next
    const period: Period = [start, end, nextEnd]
    const ask = client()
    const full = { allowed: true, remaining: 0, retryAfterMs: 0 }
    const wait = (ms: number) => ({ retryAfterMs: ms, resetAfterMs: ms, nextAfterMs: ms })

    expect(await ask('take', start, period, 3)).toMatchObject({ ...full, resetAfterMs: length })
    expect(await ask('take', start + 5, period)).toMatchObject({
      allowed: false,
      ...wait(length - 5),
    })
    expect(await ask('take', end - 1, period)).toMatchObject({ allowed: false, ...wait(1) })
    // The call sends the old period, but Redis' clock opens the next one.
    expect(await ask('take', end, period, 3)).toMatchObject({ ...full, resetAfterMs: next })
    const following: Period = [end, nextEnd, nextEnd + days]
    expect(await ask('take', end, following)).toMatchObject({ allowed: false, ...wait(next) })
    expect(await ask('take', nextEnd - 1, following)).toMatchObject({ allowed: false, ...wait(1) })
    expect(await ask('peek', nextEnd, following)).toMatchObject({ remaining: 3, resetAfterMs: 0 })
  },
)

/** Three successive periods of different lengths. */
const [first, second, third]: [Period, Period, Period] = [
  [1000, 1400, 1900],
  [1400, 1900, 2200],
  [1900, 2200, 2900],
]

test('A caller whose clock is ahead opens the period that it sends, unless another period is open.', async () => {
  const early = client()
  expect(await early('take', 1399, second)).toMatchObject({ allowed: true, resetAfterMs: 501 })
  expect(await early('take', 1399, first)).toMatchObject({ remaining: 1, resetAfterMs: 501 })
  expect(await early('take', 1400, second)).toMatchObject({ remaining: 0, resetAfterMs: 500 })

  const open = client()
  expect(await open('take', 1000, first, 2)).toMatchObject({ remaining: 1, resetAfterMs: 400 })
  expect(await open('take', 1399, second)).toMatchObject({ remaining: 0, resetAfterMs: 1 })
  expect(await open('take', 1399, second)).toMatchObject({ allowed: false, retryAfterMs: 1 })
  expect(await open('take', 1400, second, 3)).toMatchObject({ remaining: 0, resetAfterMs: 500 })
})

test('A caller whose clock is behind does not change the open period.', async () => {
  const ask = client()
  expect(await ask('take', 1400, first, 2)).toMatchObject({ remaining: 1, resetAfterMs: 500 })
  expect(await ask('take', 1400, second)).toMatchObject({ remaining: 0, resetAfterMs: 500 })
  expect(await ask('take', 1899, first)).toMatchObject({ allowed: false, retryAfterMs: 1 })
})

test('If the clock of a caller is more than a period behind, later periods are as long as the last one that it sends.', async () => {
  const ask = client()
  expect(await ask('take', 1900, first, 2)).toMatchObject({ remaining: 1, resetAfterMs: 500 })
  expect(await ask('take', 2399, first)).toMatchObject({ remaining: 0, resetAfterMs: 1 })
  expect(await ask('take', 2400, first)).toMatchObject({ remaining: 2, resetAfterMs: 500 })
  // An open period applies to every caller until it ends.
  expect(await ask('take', 2400, third)).toMatchObject({ remaining: 1, resetAfterMs: 500 })
})

test('If the clock of Redis moves back, the open period continues and keeps its end.', async () => {
  const ask = client()
  expect(await ask('take', 1900, second, 2)).toMatchObject({ remaining: 1, resetAfterMs: 300 })
  expect(await ask('take', 1300, first)).toMatchObject({ remaining: 0, resetAfterMs: 900 })
  expect(await ask('take', 1300, first)).toMatchObject({ allowed: false, retryAfterMs: 900 })
})

test('A refund applies to the period in which its units were taken.', async () => {
  const row = rowOf(policy, 3)
  await ask(server, 'take', { ...row, period: first }, 1399)
  await ask(server, 'take', { ...row, period: first }, 1400)
  const refund = async (decidedAt: number) => {
    const limit = { ...row, period: second, cost: 1 }
    return (await ask(server, 'refund', limit, 1401, { decidedAt })).remaining
  }
  expect(await refund(1399)).toBe(0)
  expect(await refund(1400)).toBe(1)
})

interface Event {
  wait: number
  /** ms by which the caller's clock is ahead. */
  skew: number
  /** Negative for a refund. */
  cost: number
}

const events = fc.array(
  fc.record({
    wait: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 15 })),
    skew: fc.oneof(fc.constant(0), fc.integer({ min: -6, max: 6 })),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: -3, max: 4 })),
  }),
  { minLength: 1, maxLength: 60, size: 'max' },
)
const drawn = fc.record({
  limit: fc.integer({ min: 1, max: 6 }),
  lengths: fc.array(fc.integer({ min: 7, max: 25 }), { minLength: 1, maxLength: 4 }),
  events,
})

/** Runs the events. Returns the time of each one, with the state before and after it. */
async function taken(limit: number, lengths: number[], events: Event[]) {
  const subject = newSubject()
  let now = 1_789_000_000_000
  const calls = events.map(({ wait, skew, cost }) => {
    now += wait
    const period = periodOf(lengths, now + skew)
    const row = { subject, terms: { ...policy, limit }, period, cost: Math.abs(cost) }
    const mode: ModelRequest['mode'] = cost < 0 ? 'refund' : 'take'
    return { now, skew, cost, mode, row }
  })
  return Promise.all(
    calls.map(async ({ now, skew, cost, mode, row }) => {
      const { states } = await server.decide(
        [
          { mode: 'peek', limits: [row] },
          { mode, limits: [row] },
        ],
        now,
      )
      const [before, after] = states.map(([state]) => state!)
      return { now, skew, cost, before: before!, after: after! }
    }),
  )
}

property(
  'No period admits more than its limit plus the units refunded in it, whatever the clocks of the callers.',
  drawn,
  async ({ limit, lengths, events }) => {
    const sums = new Map<number, number>()
    for (const { now, before, after } of await taken(limit, lengths, events)) {
      const [start] = periodOf(lengths, now)
      const sum = (sums.get(start) ?? 0) + before.remaining - after.remaining
      sums.set(start, sum)
      expect(sum).toBeLessThanOrEqual(limit)
    }
  },
)
