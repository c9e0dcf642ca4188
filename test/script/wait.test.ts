import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryParts } from '../../site/playground/engine/memory-parts.ts'
import type { Limit, StoreReply, StoreRequest, Ticket } from '../../src/core/connection/store.ts'
import { decideList } from '../../src/stores/durable-objects/decide.ts'
import { property } from '../support/law.ts'
import type { Counting } from '../support/schedules.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'
import { turnStart as start, type TurnSchedule, turnSchedule } from '../support/turns.ts'
import { limit, waitingStore } from '../support/waits.ts'

const server = useServer()
const store = waitingStore(server)

const kinds: Counting[] = ['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket']

/** What other features add to a policy of a schedule, which has a wait or not. */
interface Extra {
  wait: number | undefined
  penalty: boolean
  override: boolean
  floor: 0 | 1
}

const extras = fc.array(
  fc.record({
    wait: fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined, freq: 3 }),
    penalty: fc.boolean(),
    override: fc.boolean(),
    floor: fc.constantFrom(0 as const, 1 as const),
  }),
  { minLength: 4, maxLength: 4 },
)

type Decide = (requests: StoreRequest[], now: number) => StoreReply | Promise<StoreReply>
interface Schedule {
  schedule: TurnSchedule
  extra: Extra[]
  others: (string | undefined)[]
}

const schedules = (algorithms: Counting[], back = 0): fc.Arbitrary<Schedule> =>
  fc.record({
    schedule: turnSchedule(algorithms, back),
    extra: extras,
    /** What else happens at each step. */
    others: fc.array(fc.constantFrom('peek', 'refund', 'reset', 'full', 'again', undefined), {
      minLength: 40,
      maxLength: 40,
    }),
  })

/** Plays a schedule of requests that come, ask again and leave. Returns all replies. */
async function play(
  { schedule: { policies, steps }, extra, others }: Schedule,
  subject: string,
  decide: Decide,
): Promise<StoreReply[]> {
  let now = start
  const replies: StoreReply[] = []
  const taken: { request: { mode: 'take'; limits: Limit[]; ticket: Ticket }; at: number }[] = []
  const limitsOf = (costs: number[]) =>
    policies.map((terms, index): Limit => {
      const { wait, penalty, override, floor } = extra[index]!
      return {
        subject,
        terms: { ...terms, localShare: 1, wait },
        cost: costs[index]!,
        ...(floor && { floor }),
        ...(override && { override: { share: 0, scalesBurst: true } }),
        ...(penalty && {
          penalty: { tag: `ban${index}`, after: 2, withinMs: 50, banMs: 20, maxMs: 60 },
        }),
      }
    })
  for (const [index, { wait, costs, longest, abandoned }] of steps.entries()) {
    now += wait
    const other = others[index]
    const earlier = taken.at(-Math.max(1, abandoned))
    const limits = limitsOf(costs)
    const ticket = { id: `r${index}`, leftMs: longest, waitedMs: 0 }
    const take = { mode: 'take' as const, limits, ticket: { ...ticket, isFull: other === 'full' } }
    const list: StoreRequest[] = [take, { mode: 'follow', limits }]
    if (other === 'peek') list.push({ mode: 'peek', limits })
    if (other === 'refund') list.push({ mode: 'refund', limits, decidedAt: now - wait })
    if (other === 'reset') list.push({ mode: 'reset', limits })
    if (abandoned > 0 && earlier) list.push({ ...earlier.request, mode: 'leave' })
    else if (other === 'again' && earlier) {
      const waitedMs = Math.max(0, now - earlier.at)
      const again: Ticket = { ...earlier.request.ticket!, waitedMs }
      list.unshift({ ...earlier.request, ticket: again })
    }
    if (longest === 60 && limits.some(({ override }) => override)) {
      const changed = limits.filter(({ override }) => override)
      list.push({ mode: 'override', limits: changed, units: 2, forMs: 30 })
    }
    replies.push(await decide(list, now))
    taken.push({ request: take, at: now })
  }
  return replies
}

for (const [name, algorithms] of [
  ...kinds.map((kind): [string, Counting[]] => [kind, [kind]]),
  ['all', kinds] as [string, Counting[]],
]) {
  property(
    `Redis and an object decide requests that wait alike, with bans, floors, limits of operators, refunds and a clock that moves back (${name}).`,
    schedules(algorithms, 20),
    async (schedule) => {
      const onRedis = await play(schedule, newSubject(), store.decide)
      const parts = memoryParts()
      const inMemory = await play(schedule, 's', (requests, now) => ({
        decidedAt: now,
        states: decideList(parts, requests, now),
      }))
      expect(onRedis).toEqual(inMemory)
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

/** A request that waits at most `leftMs`. */
function waiting(limits: Limit[], id: string, leftMs = 5_000) {
  const ask = async (
    at: number,
    mode: 'take' | 'peek' | 'leave' | 'reset' = 'take',
    extra = {},
  ) => {
    const now = start + at
    const ticket = { id, leftMs: leftMs - at, waitedMs: at, ...extra }
    const { states } = await store.decide([{ mode, limits, ticket }], now)
    return states[0]!.map(({ allowed, retryAfterMs }) => (allowed ? 'passes' : retryAfterMs))
  }
  return ask
}

test('Requests pass in the order in which they came, each at its turn, and an earlier ask does not lose the place.', async () => {
  const limits = [limit(newSubject(), spaced(5_000))]
  const [first, second, third, fourth] = ['a', 'b', 'c', 'd'].map((id) => waiting(limits, id))
  expect(await first!(0)).toEqual(['passes'])
  expect([await second!(0), await third!(0), await fourth!(0)]).toEqual([[100], [200], [300]])
  expect([await fourth!(50), await third!(100)]).toEqual([[250], [100]])
  expect([await third!(100), await second!(100)]).toEqual([[100], ['passes']])
  expect([await third!(200), await fourth!(300)]).toEqual([['passes'], ['passes']])
})

test('A request that leaves makes room for those behind it.', async () => {
  const limits = [limit(newSubject(), spaced(5_000))]
  const [first, second, third] = ['a', 'b', 'c'].map((id) => waiting(limits, id))
  await first!(0)
  expect([await second!(0), await third!(0)]).toEqual([[100], [200]])
  await second!(10, 'leave')
  expect([await third!(10), await third!(100)]).toEqual([[90], ['passes']])
})

test('A request that never asks again keeps its place for half a second after its turn.', async () => {
  const limits = [limit(newSubject(), spaced(5_000))]
  const [first, second, third] = ['a', 'b', 'c'].map((id) => waiting(limits, id))
  await first!(0)
  expect([await second!(0), await third!(0)]).toEqual([[100], [200]])
  expect(await third!(599)).toEqual([100])
  expect(await third!(600)).toEqual(['passes'])
})

test('A refusal by a limit without a wait charges nothing, and gives no place.', async () => {
  const subject = newSubject()
  const limits = [limit(subject, spaced(2_000)), limit(subject, spaced(undefined, 'u'))]
  await waiting(limits, 'a')(0)
  expect(await waiting(limits, 'b')(0)).toEqual([100, 100])
  expect(await waiting(limits.slice(0, 1), 'c')(0)).toEqual([100])
})

test('A request has places only in the lines that it waits in, so that it delays no others elsewhere.', async () => {
  const [one, other] = [newSubject(), newSubject()]
  const slow = limit(one, { ...spaced(5_000), limit: 1 })
  const fast = limit(other, spaced(5_000))
  await waiting([slow], 'a')(0)
  expect(await waiting([slow, fast], 'b')(0)).toEqual([1_000, 'passes'])
  expect(await waiting([fast], 'c')(0)).toEqual(['passes'])
  expect(await waiting([fast], 'd')(0)).toEqual([100])
})

test('A request whose turn is later than its wait is refused with the time, and is in no line.', async () => {
  const limits = [limit(newSubject(), spaced(5_000))]
  await waiting(limits, 'a')(0)
  expect(await waiting(limits, 'b', 99)(0)).toEqual([100])
  expect(await waiting(limits, 'c', 100)(0)).toEqual([100])
  expect(await waiting(limits, 'd', 199)(0)).toEqual([200])
  expect(await waiting(limits, 'e')(0)).toEqual([200])
})

test('An isolate without room takes no place, and the refusal tells the time and counts towards no ban.', async () => {
  const subject = newSubject()
  const penalty = { tag: 'ban', after: 1, withinMs: 60_000, banMs: 60_000, maxMs: 60_000 }
  const limits = [{ ...limit(subject, spaced(5_000)), penalty }]
  await waiting(limits, 'a')(0)
  expect(await waiting(limits, 'b')(0, 'take', { isFull: true })).toEqual([100])
  expect(await waiting(limits, 'c')(0)).toEqual([100])
  expect(await waiting(limits, 'd', 150)(0)).toEqual([60_000])
})

test('A peek tells what a request would meet: those that wait come first.', async () => {
  const limits = [limit(newSubject(), { ...spaced(5_000), burst: 2 })]
  const ask = ['a', 'b', 'c', 'd'].map((id) => waiting(limits, id))
  for (const one of ask) await one(0)
  const peek = () => store.decide([{ mode: 'peek', limits }], start + 100)
  expect((await peek()).states[0]![0]).toMatchObject({
    allowed: false,
    remaining: 0,
    retryAfterMs: 200,
  })
  await ask[2]!(100, 'leave')
  await ask[3]!(100, 'leave')
  expect((await peek()).states[0]![0]).toMatchObject({ allowed: true, remaining: 1 })
})

test('A reset ends the line.', async () => {
  const limits = [limit(newSubject(), spaced(5_000))]
  for (const id of ['a', 'b', 'c']) await waiting(limits, id)(0)
  await waiting(limits, 'd')(0, 'reset')
  expect(await waiting(limits, 'e')(0)).toEqual(['passes'])
})

test('A request that must leave fewer units free does not stand behind the others.', async () => {
  const subject = newSubject()
  const terms = { ...spaced(5_000), burst: 10 }
  const reserving = { ...limit(subject, terms), floor: 5 }
  for (const id of ['a', 'b', 'c', 'd', 'e']) await waiting([reserving], id)(0)
  expect(await waiting([reserving], 'f')(0)).toEqual([100])
  expect(await waiting([limit(subject, terms)], 'g')(0)).toEqual(['passes'])
})

test('A caller that takes no ticket overtakes, and no bound breaks.', async () => {
  const limits = [limit(newSubject(), spaced(5_000))]
  await waiting(limits, 'a')(0)
  await waiting(limits, 'b')(0)
  const { states } = await store.decide([{ mode: 'take', limits }], start + 100)
  expect(states[0]![0]!.allowed).toBe(true)
  expect(await waiting(limits, 'b')(100)).toEqual([100])
})

test('A line has at most 1,000 tickets.', async () => {
  const limits = [limit(newSubject(), { ...spaced(60_000), limit: 1_000 })]
  const take = (index: number): StoreRequest[] => [
    { mode: 'take', limits, ticket: { id: `t${index}`, leftMs: 60_000, waitedMs: 0 } },
  ]
  const lists = Array.from({ length: 1_003 }, (_, index) => take(index))
  const replies = (await store.store.decideEach(lists, { now: start })) as StoreReply[]
  const turns = replies.map(({ states }) => states[0]![0]!.retryAfterMs)
  expect(turns.slice(-4)).toEqual([999, 1_000, 1_001, 1_001])
})
