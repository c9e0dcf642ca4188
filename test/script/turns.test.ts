import { expect, test } from 'vitest'
import type { Limit } from '../../src/core/connection/store.ts'
import { lineTag } from '../../src/features/outbound/turn-store.ts'
import { turnOf } from '../../src/features/outbound/turns.ts'
import { decideList } from '../../src/stores/durable-objects/decide.ts'
import { memoryParts } from '../../src/stores/durable-objects/memory-parts.ts'
import { TurnModel } from '../model/turns.ts'
import { lawRuns, property } from '../support/law.ts'
import type { Counting } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'
import {
  limitsOf,
  modelLimits,
  playTurns,
  type TurnSchedule,
  turnOn,
  turnSchedule,
  turnStart,
} from '../support/turns.ts'

const server = useServer()

const kinds: Counting[] = ['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket']
const mixes: [string, Counting[]][] = [
  ...kinds.map((kind): [string, Counting[]] => [kind, [kind]]),
  ['all', kinds],
  ['window and bucket', ['sliding-window', 'token-bucket']],
]

const play = (schedule: TurnSchedule) => {
  const subject = newSubject()
  return playTurns(
    schedule,
    subject,
    (ask, now) => turnOn(server, ask, now),
    (requests, now) => server.decide(requests as never, now),
  )
}

for (const [name, algorithms] of mixes) {
  property(
    `A turn is the one that the oracle gives, and that of the state machine of an object (${name}).`,
    turnSchedule(algorithms),
    async (schedule) => {
      const { policies, steps } = schedule
      const turns = await play(schedule)
      const model = new TurnModel()
      const expected = await playTurns(
        schedule,
        '',
        (ask, now) => {
          const costs = ask.limits.map(({ cost }) => cost)
          const place = model.take(modelLimits(policies, costs), BigInt(now), BigInt(ask.waitMs))
          return {
            now,
            place: place === null ? null : Number(place),
            ahead: 0,
            coolMs: 0,
            left: [],
          }
        },
        ([request], now) => {
          const { limits, decidedAt } = request as { limits: Limit[]; decidedAt: number }
          const costs = limits.map(({ cost }) => cost)
          model.abandon(modelLimits(policies, costs), BigInt(decidedAt), BigInt(now))
        },
      )
      const places = turns.map(({ turn }) => turn.place)
      expect(places).toEqual(expected.map(({ turn }) => turn.place))

      const parts = memoryParts()
      const objects = await playTurns(
        schedule,
        's',
        (ask, now) => turnOf(parts, ask, lineTag(ask.limits), now),
        (requests, now) => decideList(parts, requests, now),
      )
      expect(objects.map(({ turn }) => turn)).toEqual(turns.map(({ turn }) => turn))
      expect(steps).toHaveLength(turns.length)
    },
    Math.ceil(lawRuns / 2),
  )

  property(
    `Turns are in the order of arrival, and each follows the one before within two windows (${name}).`,
    turnSchedule(algorithms, 20),
    async (schedule) => {
      const longest = Math.max(...schedule.policies.map(({ windowMs }) => windowMs))
      const widest = Math.max(...schedule.policies.map(({ windowMs, burst }) => windowMs * burst))
      let last = 0
      for (const { now, turn, isSent } of await play(schedule)) {
        if (turn.place === null) continue
        const from = Math.max(now, last)
        expect(turn.place).toBeGreaterThanOrEqual(from)
        expect(turn.place).toBeLessThanOrEqual(from + Math.max(2 * longest, widest))
        if (isSent || turn.left.length > 0) last = turn.place
      }
    },
  )
}

/** The upper bound of the units that are sent in any half-open interval of one window, as in bounds.test.ts. */
const bounds: Record<Counting, (terms: { limit: number; burst: number }) => number> = {
  'fixed-window': ({ limit }) => 2 * limit,
  'sliding-window': ({ limit }) => 2 * limit - 1,
  'sliding-log': ({ limit }) => limit,
  'token-bucket': ({ burst, limit }) => burst + limit - 1,
}

for (const kind of kinds) {
  property(
    `What is sent in a window stays within the bound, with abandoned turns and a clock that moves back (${kind}).`,
    turnSchedule([kind], 20),
    async (schedule) => {
      const [terms] = schedule.policies
      let latest = 0
      const sent = (await play(schedule)).flatMap(({ turn, limits, isSent }) => {
        if (!isSent || limits[0]!.cost === 0) return []
        latest = Math.max(latest, turn.place!)
        return [{ time: latest, units: limits[0]!.cost }]
      })
      for (const { time: from } of sent) {
        const inside = sent.filter(({ time }) => time >= from && time < from + terms!.windowMs)
        const units = inside.reduce((sum, one) => sum + one.units, 0)
        expect(units).toBeLessThanOrEqual(bounds[kind](terms!))
      }
    },
    lawRuns,
  )
}

const bucket = (limit: number, burst: number, windowMs = 1000) => ({
  tag: 't',
  algorithm: 'token-bucket' as const,
  limit,
  windowMs,
  burst,
  align: 'first-request' as const,
})
const take = (limits: Limit[], now: number, waitMs = 60_000) =>
  turnOn(server, { do: 'take', limits, waitMs, holdMs: waitMs }, now)

test('Requests that do not fit get places one after the other, in one call each.', async () => {
  const limits = limitsOf(newSubject(), [bucket(10, 1)], [1])
  const places = []
  for (let index = 0; index < 4; index += 1) places.push((await take(limits, turnStart)).place)
  expect(places).toEqual([0, 100, 200, 300].map((ms) => turnStart + ms))
})

test('A place beyond the wait is reported exactly and charges nothing.', async () => {
  const limits = limitsOf(newSubject(), [bucket(10, 1)], [1])
  await take(limits, turnStart)
  expect((await take(limits, turnStart, 99)).place).toBe(turnStart + 100)
  expect((await take(limits, turnStart, 100)).place).toBe(turnStart + 100)
  expect((await take(limits, turnStart, 100)).place).toBe(turnStart + 200)
})

test('A peek tells the next turn and gives none.', async () => {
  const limits = limitsOf(newSubject(), [bucket(10, 1)], [1])
  await take(limits, turnStart)
  const peek = () => turnOn(server, { do: 'peek', limits, waitMs: 0, holdMs: 0 }, turnStart)
  expect((await peek()).place).toBe(turnStart + 100)
  expect((await peek()).place).toBe(turnStart + 100)
})

test('A cooldown delays every later turn to its end.', async () => {
  const limits = limitsOf(newSubject(), [bucket(10, 10)], [1])
  const report = { do: 'learn' as const, limits, sentAt: turnStart, coolMs: 5_000, lowered: [] }
  await turnOn(
    server,
    { ...report, limits: limits.map((one) => ({ ...one, cost: 10 })) },
    turnStart,
  )
  const turn = await take(limits, turnStart + 1_000)
  expect(turn).toMatchObject({ place: turnStart + 5_000, coolMs: 4_000 })
  expect((await take(limits, turnStart + 6_000)).place).toBe(turnStart + 6_000)
})

for (const algorithm of kinds) {
  test(`What the other side has left lowers ours, and never raises it (${algorithm}).`, async () => {
    const terms = { ...bucket(10, 10), algorithm }
    const limits = limitsOf(newSubject(), [terms], [1])
    const learn = (left: number) =>
      turnOn(
        server,
        {
          do: 'learn',
          limits: limits.map((one) => ({ ...one, cost: left })),
          sentAt: turnStart + 1,
          coolMs: 0,
          lowered: [],
        },
        turnStart + 1,
      )
    const first = await take(limits, turnStart)
    expect(first.left).toEqual([9])
    await learn(3)
    expect((await take(limits, turnStart + 1)).left).toEqual([2])
    await learn(10)
    expect((await take(limits, turnStart + 1)).left).toEqual([1])
  })
}

test('A lower limit that the other side reports is in force for its time.', async () => {
  const limits = limitsOf(newSubject(), [bucket(10, 4)], [1])
  const lowered = [{ tag: 't', limit: 5, forMs: 60_000 }]
  const report = { do: 'learn' as const, sentAt: turnStart, coolMs: 0, lowered }
  await turnOn(
    server,
    { ...report, limits: limits.map((one) => ({ ...one, cost: 99 })) },
    turnStart,
  )
  const places = []
  for (let index = 0; index < 4; index += 1) places.push((await take(limits, turnStart)).place)
  expect(places).toEqual([0, 0, 200, 400].map((ms) => turnStart + ms))
})

/** The store of the script, and that of an object. */
const stores = {
  Lua: () => (ask: Parameters<typeof turnOf>[1], now: number) => turnOn(server, ask, now),
  TypeScript: () => {
    const parts = memoryParts()
    return async (ask: Parameters<typeof turnOf>[1], now: number) =>
      turnOf(parts, ask, lineTag(ask.limits), now)
  },
}

for (const algorithm of kinds) {
  test.for(Object.entries(stores))(
    `What is left of a lower limit is sent, no less and no more (${algorithm}, %s).`,
    async ([, start]) => {
      const turn = start()
      const terms = { ...bucket(100, 100, 60_000), algorithm }
      const limits = limitsOf(newSubject(), [terms], [1])
      const ask = { do: 'take' as const, limits, waitMs: 1_000, holdMs: 1_000 }
      await turn(ask, turnStart)
      const report = {
        do: 'learn' as const,
        limits: limits.map((one) => ({ ...one, cost: 10 })),
        sentAt: turnStart,
        coolMs: 0,
        lowered: [{ tag: 't', limit: 50, forMs: 60_000 }],
      }
      await turn(report, turnStart)
      expect((await turn(ask, turnStart)).left).toEqual([9])
    },
  )

  test.for(Object.entries(stores))(
    `A cost of 0 does not wait, also if more than the limit is used (${algorithm}, %s).`,
    async ([, start]) => {
      const turn = start()
      const of = (cost: number) =>
        limitsOf(subject, [{ ...bucket(10, 10, 60_000), algorithm }], [cost])
      const subject = newSubject()
      const ask = { do: 'take' as const, waitMs: 1_000, holdMs: 1_000 }
      await turn({ ...ask, limits: of(8) }, turnStart)
      const lowered = [{ tag: 't', limit: 5, forMs: 60_000 }]
      const report = { do: 'learn' as const, sentAt: turnStart, coolMs: 0, lowered }
      await turn({ ...report, limits: of(99) }, turnStart)
      expect((await turn({ ...ask, limits: of(0) }, turnStart + 1)).place).toBe(turnStart + 1)
      expect((await turn({ ...ask, limits: of(1) }, turnStart + 1)).place).toBeGreaterThan(
        turnStart + 1_000,
      )
    },
  )
}

const slots = (subject: string, slot: string): Limit[] => [
  ...limitsOf(subject, [bucket(1_000, 1_000)], [1]),
  {
    subject,
    terms: { ...bucket(2, 2, 60_000), tag: 'open', algorithm: 'concurrency', localShare: 1 },
    cost: 1,
    slot,
  },
]

test('Requests wait for a slot in the order of arrival, and charge nothing until they have one.', async () => {
  const subject = newSubject()
  const ahead = []
  for (const id of ['a', 'b', 'z', 'y']) {
    ahead.push((await take(slots(subject, id), turnStart)).ahead)
  }
  expect(ahead).toEqual([0, 0, 1, 2])
  expect((await take(slots(subject, 'y'), turnStart)).left).toEqual([])
  const release = (id: string) =>
    server.decide([{ mode: 'refund', limits: [slots(subject, id)[1]!] }] as never, turnStart)
  await release('a')
  expect((await take(slots(subject, 'y'), turnStart)).ahead).toBe(1)
  expect((await take(slots(subject, 'x'), turnStart)).ahead).toBe(2)
  expect(await take(slots(subject, 'z'), turnStart)).toMatchObject({ ahead: 0, left: [997] })
  await release('z')
  expect((await take(slots(subject, 'y'), turnStart)).ahead).toBe(0)
})

test('The slot of a request that died ends, and the next one gets its turn.', async () => {
  const subject = newSubject()
  for (const id of ['a', 'b', 'c']) await take(slots(subject, id), turnStart, 1_000)
  const later = turnStart + 61_002
  expect((await take(slots(subject, 'd'), later, 1_000)).ahead).toBe(0)
})
