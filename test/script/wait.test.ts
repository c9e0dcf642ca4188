import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Limit, StoreReply, StoreRequest } from '../../src/core/connection/store.ts'
import { decideWaits } from '../../src/features/turns/object.ts'
import { memoryParts } from '../../src/stores/durable-objects/memory-parts.ts'
import { TurnModel } from '../model/turns.ts'
import { property } from '../support/law.ts'
import type { Counting } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'
import { modelLimits, turnSchedule, turnStart } from '../support/turns.ts'
import { limit, waitingStore } from '../support/waits.ts'

const server = useServer()
const store = waitingStore(server)

const kinds: Counting[] = ['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket']

/** A policy of a schedule, with a wait or without, and what other features add. */
interface Extra {
  wait: number | undefined
  penalty: boolean
  override: boolean
  floor: boolean
}

const extras = fc.array(
  fc.record({
    wait: fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined, freq: 3 }),
    penalty: fc.boolean(),
    override: fc.boolean(),
    floor: fc.boolean(),
  }),
  { minLength: 4, maxLength: 4 },
)

type Decide = (requests: StoreRequest[], now: number) => StoreReply | Promise<StoreReply>

interface Step {
  now: number
  limits: Limit[]
  reply: StoreReply
  isGivenUp: boolean
}

const placeOf = ({ reply: { states, decidedAt } }: Step) =>
  Math.max(decidedAt, ...states[0]!.map(({ waitMs = 0 }) => decidedAt + waitMs))
const isAdmitted = ({ states }: StoreReply) => states[0]!.every(({ allowed }) => allowed)

/** Plays a schedule. Requests that wait may give their places up, as the isolate does. */
async function play(
  { policies, steps }: { policies: Omit<Limit['terms'], 'localShare'>[]; steps: Steps },
  extra: Extra[],
  subject: string,
  decide: Decide,
): Promise<Step[]> {
  let now = turnStart
  const done: Step[] = []
  const terms = policies.map((one, index) => ({
    ...one,
    localShare: 1,
    wait: extra[index]!.wait,
  }))
  for (const { wait, costs, longest, abandoned } of steps) {
    now += wait
    const given = done.at(-abandoned)
    // Only a request that waits can give its place up.
    if (abandoned > 0 && given && !given.isGivenUp && placeOf(given) > Math.max(now, given.now)) {
      given.isGivenUp = true
      const refunds = given.limits.flatMap((limit, index): StoreRequest | [] => {
        const { waitMs, decidedAt = given.reply.decidedAt } = given.reply.states[0]![index]!
        if (limit.cost === 0 || (waitMs && limit.terms.algorithm === 'sliding-log')) return []
        return { mode: 'refund', limits: [limit], decidedAt }
      })
      if (refunds.length > 0) await decide(refunds, now)
    }
    const limits = terms.map((own, index): Limit => {
      const { penalty, override, floor } = extra[index]!
      return {
        subject,
        terms: own,
        cost: costs[index]!,
        ...(floor && { floor: 1 }),
        ...(override && { override: { share: 0, scalesBurst: true } }),
        ...(penalty && {
          penalty: { tag: `ban${index}`, after: 2, withinMs: 50, banMs: 20, maxMs: 60 },
        }),
      }
    })
    if (longest === 60 && limits.some(({ override }) => override)) {
      const changed = limits.filter(({ override }) => override)
      await decide([{ mode: 'override', limits: changed, units: 2, forMs: 30 }], now)
    }
    const reply = await decide(
      [
        { mode: 'take', limits },
        { mode: 'follow', limits },
      ],
      now,
    )
    done.push({ now, limits, reply, isGivenUp: false })
  }
  return done
}
type Steps = { wait: number; costs: number[]; longest: number; abandoned: number }[]

const arbitrary = (algorithms: Counting[], back = 0) =>
  fc.record({ schedule: turnSchedule(algorithms, back), extra: extras })

for (const [name, algorithms] of [
  ...kinds.map((kind): [string, Counting[]] => [kind, [kind]]),
  ['all', kinds] as [string, Counting[]],
]) {
  property(
    `A request that may wait is decided as the state machine of an object decides it (${name}).`,
    arbitrary(algorithms, 20),
    async ({ schedule, extra }) => {
      const onRedis = await play(schedule, extra, newSubject(), store.decide)
      const parts = memoryParts()
      const inMemory = await play(schedule, extra, 's', (requests, now) => ({
        decidedAt: now,
        states: decideWaits(parts, requests, now),
      }))
      onRedis.forEach(({ reply }, index) => {
        expect(reply).toEqual(inMemory[index]!.reply)
      })
    },
  )
}

/** The upper bound of the units of any half-open interval of one window, as in bounds.test.ts. */
const bounds: Record<Counting, (terms: { limit: number; burst: number }) => number> = {
  'fixed-window': ({ limit }) => 2 * limit,
  'sliding-window': ({ limit }) => 2 * limit - 1,
  'sliding-log': ({ limit }) => limit,
  'token-bucket': ({ burst, limit }) => burst + limit - 1,
}
const waiting: Extra = { wait: 60, penalty: false, override: false, floor: false }

for (const kind of kinds) {
  property(
    `What goes on in a window stays within the bound, with waits, abandoned places, debts and a clock that moves back (${kind}).`,
    fc.record({
      schedule: turnSchedule([kind], 20),
      debts: fc.array(fc.integer({ min: 0, max: 3 })),
    }),
    async ({ schedule, debts }) => {
      const [terms] = schedule.policies
      let calls = 0
      const steps = await play(schedule, [waiting], newSubject(), async (requests, now) => {
        const reply = await store.decide(requests.slice(0, 1), now)
        const units = debts[calls++] ?? 0
        const { limits, mode } = requests[0]!
        if (mode !== 'take' || units === 0) return reply
        const debt: StoreRequest = { mode: 'debt', limits: [{ ...limits[0]!, cost: units }] }
        await store.decide([debt], now)
        return reply
      })
      let latest = 0
      const sent = steps.flatMap((step) => {
        if (!isAdmitted(step.reply) || step.isGivenUp || step.limits[0]!.cost === 0) return []
        latest = Math.max(latest, placeOf(step))
        return [{ time: latest, units: step.limits[0]!.cost }]
      })
      for (const { time: from } of sent) {
        const inside = sent.filter(({ time }) => time >= from && time < from + terms!.windowMs)
        const units = inside.reduce((sum, one) => sum + one.units, 0)
        expect(units).toBeLessThanOrEqual(bounds[kind](terms!))
      }
    },
  )

  property(
    `Requests go on in the order of arrival, at the places that the oracle gives (${kind}).`,
    turnSchedule([kind]),
    async ({ policies, steps }) => {
      const alike = steps.map((step) => ({ ...step, costs: [1] }))
      const played = await play(
        { policies, steps: alike },
        [waiting],
        newSubject(),
        (requests, now) => store.decide(requests.slice(0, 1), now),
      )
      const model = new TurnModel()
      let last = 0
      for (const [index, step] of played.entries()) {
        const given = played[index - alike[index]!.abandoned]
        const isGivenUp =
          alike[index]!.abandoned > 0 && given?.isGivenUp && placeOf(given) > step.now
        if (isGivenUp && kind !== 'sliding-log') {
          model.abandon(modelLimits(policies, [1]), BigInt(placeOf(given)), BigInt(step.now))
          given.isGivenUp = false // once
        }
        const place = model.take(modelLimits(policies, [1]), BigInt(step.now), 60n)
        const [state] = step.reply.states[0]!
        if (place !== null && Number(place) - step.now <= 60) {
          expect(placeOf(step)).toBe(Number(place))
          expect(placeOf(step)).toBeGreaterThanOrEqual(last)
          last = placeOf(step)
        } else {
          expect(state).toMatchObject({
            allowed: false,
            retryAfterMs: place === null ? null : Number(place) - step.now,
          })
        }
      }
    },
  )
}

const spaced = (wait: number | undefined, tag = 't') => ({
  tag,
  algorithm: 'token-bucket' as const,
  limit: 10,
  windowMs: 1_000,
  burst: 1,
  align: 'first-request' as const,
  wait,
})
const take = (limits: Limit[], now = turnStart) => store.decide([{ mode: 'take', limits }], now)

test('A refusal by a limit without a wait charges nothing, also no place.', async () => {
  const subject = newSubject()
  const limits = () => [limit(subject, spaced(2_000)), limit(subject, spaced(undefined, 'u'))]
  await take(limits())
  const { states } = await take(limits())
  expect(states[0]!.map(({ allowed }) => allowed)).toEqual([true, false])
  expect((await take([limits()[0]!])).states[0]![0]!.waitMs).toBe(100)
})

test('Limits of one subject are charged at one time, and those of another subject at their own.', async () => {
  const [one, other] = [newSubject(), newSubject()]
  const second = { ...spaced(1_000, 'u'), limit: 5 }
  const limits = [
    limit(one, spaced(1_000)),
    limit(one, second),
    limit(other, { ...spaced(1_000), burst: 9 }),
  ]
  await take(limits)
  const { states } = await take(limits)
  expect(states[0]!.map(({ waitMs }) => waitMs)).toEqual([200, 200, undefined])
})

test('The shortest wait of the limits counts.', async () => {
  const subject = newSubject()
  const limits = [limit(subject, spaced(99)), limit(subject, { ...spaced(5_000, 'u'), limit: 99 })]
  await take(limits)
  expect((await take(limits)).states[0]![0]).toMatchObject({ allowed: false, retryAfterMs: 100 })
})

test('Lists of one call wait one after the other, and the others are decided as ever.', async () => {
  const [one, other] = [newSubject(), newSubject()]
  const lists: StoreRequest[][] = [
    [{ mode: 'take', limits: [limit(one, spaced(5_000))] }],
    [{ mode: 'take', limits: [limit(other, spaced(undefined))] }],
    [{ mode: 'take', limits: [limit(one, spaced(5_000))] }],
    [{ mode: 'take', limits: [limit(other, spaced(undefined))] }],
    [{ mode: 'take', limits: [limit(one, spaced(5_000))] }],
  ]
  const replies = (await store.store.decideEach(lists, { now: turnStart })) as StoreReply[]
  const states = replies.map((reply) => reply.states[0]![0]!)
  expect(states.map(({ waitMs }) => waitMs)).toEqual([undefined, undefined, 100, undefined, 200])
  expect(states.map(({ allowed }) => allowed)).toEqual([true, true, true, false, true])
})

test('A repeated call with an idempotency key has the place of the first one.', async () => {
  const subject = newSubject()
  const limits = [limit(subject, spaced(5_000))]
  await take(limits)
  const idempotency = { key: newSubject(), fingerprint: 'f', forMs: 60_000 }
  const once = () => store.store.decide([{ mode: 'take', limits }], { now: turnStart, idempotency })
  expect((await once()).states[0]![0]!.waitMs).toBe(100)
  expect(await once()).toMatchObject({ replayed: true, states: [[{ waitMs: 100 }]] })
  expect((await take(limits)).states[0]![0]!.waitMs).toBe(200)
})

test('An isolate without room for more asks for no place, and the refusal tells the time.', async () => {
  const full = waitingStore(server, 1)
  full.room.enter(Date.now() + 60_000)
  const limits = [limit(newSubject(), spaced(5_000))]
  await full.decide([{ mode: 'take', limits }], turnStart)
  const { states } = await full.decide([{ mode: 'take', limits }], turnStart)
  expect(states[0]![0]).toMatchObject({ allowed: false, retryAfterMs: 100 })
  expect((await take(limits)).states[0]![0]!.waitMs).toBe(100)
})

test('A log lives until its units at a later place have ended.', async () => {
  const subject = newSubject()
  const log = { ...spaced(60_000), algorithm: 'sliding-log' as const, limit: 1, windowMs: 10_000 }
  await take([limit(subject, log)])
  expect((await take([limit(subject, log)])).states[0]![0]!.waitMs).toBe(10_000)
  const [key] = (await server.send('KEYS', `*${subject}*:log:t`)) as string[]
  // A call with a time of its own keeps its keys for a minute longer.
  expect(Number(await server.send('PTTL', key!))).toBeGreaterThan(78_000)
})
