import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { StoreState } from '../../src/core/connection/store.ts'
import { keyOf, Model, type ModelRequest } from '../model/model.ts'
import { rowOf } from '../support/ask.ts'
import { property } from '../support/law.ts'
import { peek } from '../support/reached-state.ts'
import { useServer } from '../support/server.ts'
import { snapshot } from '../support/stored-state.ts'

const server = useServer()

/** The slots of one client. By default, each is held for at most a second. */
function slots(limit: number, windowMs = 1000) {
  const row = { ...rowOf({ algorithm: 'concurrency', limit, windowMs }), slot: '' }
  const key = keyOf(row)
  const model = new Model()
  const ask =
    (mode: ModelRequest['mode']) =>
    async (now: number, slot: string, cost = 1): Promise<StoreState> => {
      const requests: ModelRequest[] = [{ mode, limits: [{ ...row, cost, slot }] }]
      const reply = await server.decide(requests, now)
      expect(reply).toEqual(model.decide(requests, now))
      return reply.states[0]![0]!
    }
  return {
    key,
    row,
    take: ask('take'),
    peek: ask('peek'),
    refund: ask('refund'),
    members: async () => (await server.send('ZRANGE', key, '0', '-1')) as string[],
  }
}

test('At most `limit` requests are in flight, and a released slot can be taken again.', async () => {
  const { take, refund, members } = slots(2)
  expect(await take(100, 'a')).toEqual({
    allowed: true,
    remaining: 1,
    retryAfterMs: 0,
    resetAfterMs: 1000,
    nextAfterMs: 1000,
  })
  expect(await take(400, 'b')).toMatchObject({ remaining: 0, resetAfterMs: 1000, nextAfterMs: 700 })
  expect(await take(500, 'c')).toEqual({
    allowed: false,
    remaining: 0,
    retryAfterMs: 600,
    resetAfterMs: 900,
    nextAfterMs: 600,
  })
  expect(await refund(500, 'a')).toMatchObject({ remaining: 1, resetAfterMs: 900 })
  expect(await take(500, 'c')).toMatchObject({ allowed: true, remaining: 0 })
  expect(await members()).toEqual(['b:1', 'c:1'])
})

test('A repeated take or release of one id changes nothing, even if no slot is free.', async () => {
  const { take, refund, members, key } = slots(3)
  await take(100, 'a', 2)
  const before = await snapshot(server, [key])
  expect(await take(200, 'a', 2)).toMatchObject({ allowed: true, remaining: 1, resetAfterMs: 900 })
  // An id that holds slots keeps them; the cost of the second take has no effect.
  expect(await take(200, 'a', 3)).toMatchObject({ allowed: true, remaining: 1 })
  expect(await take(200, 'a', 9)).toMatchObject({ allowed: true, remaining: 1 })
  expect(await snapshot(server, [key])).toEqual(before)
  await take(300, 'b')
  expect(await take(400, 'a', 2)).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 0 })
  expect(await members()).toEqual(['a:1', 'a:2', 'b:1'])
  expect(await refund(400, 'a', 2)).toMatchObject({ remaining: 2 })
  const released = await snapshot(server, [key])
  expect(await refund(400, 'a', 2)).toMatchObject({ remaining: 2 })
  expect(await snapshot(server, [key])).toEqual(released)
  // After the slots have expired, other ids may take them.
  await take(1299, 'c')
  await take(1300, 'b')
  expect(await members()).toEqual(['c:1', 'b:1'])
})

test('A refund at any cost above 0 releases all slots of its id and no others.', async () => {
  for (const cost of [1, 3, 7, 5000]) {
    const { take, refund, members } = slots(9)
    await take(100, 'a', 4)
    await take(100, 'ab', 2)
    await take(100, 'a-b', 1)
    expect(await refund(200, 'a', cost)).toMatchObject({ allowed: true, remaining: 6 })
    expect((await members()).sort()).toEqual(['a-b:1', 'ab:1', 'ab:2'])
    expect(await refund(200, 'none', cost)).toMatchObject({ allowed: true, remaining: 6 })
    expect(await refund(200, 'ab', 0)).toMatchObject({ remaining: 6 })
  }
})

test('A refund also releases expired slots, and a take removes them.', async () => {
  const { take, refund, members } = slots(9)
  await take(100, 'old', 2)
  await take(600, 'new')
  expect(await refund(1200, 'old', 2)).toMatchObject({ remaining: 8, resetAfterMs: 400 })
  expect(await members()).toEqual(['new:1'])
  await take(1600, 'next')
  expect(await members()).toEqual(['next:1'])
})

test('Several slots are taken together or not at all, and wait until enough slots expire.', async () => {
  const { take } = slots(4)
  await take(100, 'a')
  await take(200, 'b')
  await take(300, 'c')
  expect(await take(400, 'd', 3)).toMatchObject({ allowed: false, remaining: 1, retryAfterMs: 800 })
  expect(await take(400, 'd', 5)).toMatchObject({ allowed: false, retryAfterMs: null })
  expect(await take(1199, 'd', 3)).toMatchObject({ allowed: false, retryAfterMs: 1 })
  expect(await take(1200, 'd', 3)).toMatchObject({ allowed: true, remaining: 0 })
})

test('The slots and the other limits of a request are charged together or not at all.', async () => {
  const { row, members } = slots(2)
  const window = {
    ...row,
    terms: { ...row.terms, tag: 'w', algorithm: 'fixed-window', limit: 1 } as const,
  }
  const both = (slot: string): ModelRequest => ({
    mode: 'take',
    limits: [{ ...row, slot }, window],
  })
  const { states } = await server.decide([both('a'), both('b')], 100)
  expect(states).toMatchObject([
    [{ allowed: true }, { allowed: true }],
    [{ allowed: true, remaining: 1 }, { allowed: false }],
  ])
  expect(await members()).toEqual(['a:1'])
})

test('A lowered limit releases no slot, and a request waits until enough slots expire.', async () => {
  const { row, take } = slots(4)
  await take(100, 'a')
  await take(200, 'b')
  await take(300, 'c')
  const lowered = { ...row, terms: { ...row.terms, limit: 2 }, slot: 'd' }
  expect(await peek(server, lowered, 400)).toEqual({
    allowed: false,
    remaining: 0,
    retryAfterMs: 800,
    resetAfterMs: 900,
    nextAfterMs: 800,
  })
})

test('If the clock moves back, no slot ends before one that was taken earlier.', async () => {
  const { take, peek } = slots(3)
  await take(500, 'a')
  expect(await take(300, 'b')).toMatchObject({ resetAfterMs: 1200, nextAfterMs: 1200 })
  expect(await peek(1499, 'c', 2)).toMatchObject({ allowed: false, retryAfterMs: 1 })
  expect(await peek(1500, 'c', 3)).toMatchObject({ allowed: true })
})

test('One call takes ten thousand slots, and the next slot is refused.', async () => {
  const { take, refund, members } = slots(10_000)
  expect(await take(100, 'all', 10_000)).toMatchObject({ allowed: true, remaining: 0 })
  expect(await take(200, 'more')).toMatchObject({ allowed: false, retryAfterMs: 900 })
  expect(await take(200, 'all', 10_000)).toMatchObject({ allowed: true })
  expect((await members()).length).toBe(10_000)
  expect(await refund(300, 'all', 10_000)).toMatchObject({ remaining: 10_000, resetAfterMs: 0 })
  expect(await members()).toEqual([])
})

test('Every number is exact with hundreds of slots in flight.', async () => {
  const { take, peek, refund } = slots(200)
  for (let index = 0; index < 200; index++) await take(100 + index, `s${index}`)
  expect(await take(300, 'more')).toMatchObject({ retryAfterMs: 800, resetAfterMs: 999 })
  expect(await peek(300, 'more', 50)).toMatchObject({ retryAfterMs: 849, nextAfterMs: 800 })
  expect(await take(300, 's150')).toMatchObject({ allowed: true, remaining: 0 })
  expect(await refund(301, 's150')).toMatchObject({ remaining: 1, resetAfterMs: 998 })
  expect(await refund(301, 's150')).toMatchObject({ remaining: 1 })
  expect(await refund(301, 's0')).toMatchObject({ remaining: 2, nextAfterMs: 800 })
  // Fifty slots have expired, but are still stored.
  expect(await take(1150, 'last', 52)).toMatchObject({ allowed: true, remaining: 0 })
  expect(await take(1151, 'late')).toMatchObject({ allowed: true })
  expect(await take(1151, 'later')).toMatchObject({ allowed: false, retryAfterMs: 1 })
})

interface Event {
  wait: number
  /** The number of slots to take. Negative for a release. */
  cost: number
  id: number
}

const drawn = fc.record({
  limit: fc.integer({ min: 1, max: 40 }),
  windowMs: fc.integer({ min: 1, max: 30 }),
  calls: fc.array(
    fc.array(
      fc.record({
        wait: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 8 })),
        cost: fc.oneof(fc.constant(1), fc.constant(-1), fc.integer({ min: -2, max: 12 })),
        id: fc.nat(9),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    { minLength: 1, maxLength: 40, size: 'max' },
  ),
})

property(
  'Never more slots than the limit are in flight, in any order of takes and releases.',
  drawn,
  async ({ limit, windowMs, calls }) => {
    const { row } = slots(limit, windowMs)
    let now = 1_789_000_000_000
    const sent = calls.map((events: Event[]) => {
      now += events[0]!.wait
      const requests = events.map(({ cost, id }): ModelRequest => {
        const mode = cost < 0 ? 'refund' : 'take'
        return { mode, limits: [{ ...row, cost: Math.abs(cost), slot: `${id}` }] }
      })
      return { now, requests, events }
    })
    const replies = await Promise.all(sent.map(({ now, requests }) => server.decide(requests, now)))

    /** An admitted request is in flight until it releases its slots, or they expire. */
    const inFlight = new Map<number, { until: number; cost: number }>()
    sent.forEach(({ now, events }, call) => {
      for (const [id, { until }] of inFlight) if (until <= now) inFlight.delete(id)
      events.forEach(({ cost, id }, index) => {
        const { allowed, remaining } = replies[call]!.states[index]![0]!
        const known = inFlight.has(id)
        if (cost < 0) inFlight.delete(id)
        else if (allowed && cost > 0 && !known) inFlight.set(id, { until: now + windowMs, cost })
        const total = [...inFlight.values()].reduce((sum, { cost }) => sum + cost, 0)
        expect(total).toBeLessThanOrEqual(limit)
        expect(remaining).toBe(limit - total)
        if (known && cost > 0) expect(allowed).toBe(true)
      })
    })
  },
)
