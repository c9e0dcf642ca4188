/** Decisions while shards move. Every database is a real Redis. */
import { describe, expect, test, vi } from 'vitest'
import { StoreError } from '../../../../src/base/errors.ts'
import { moveKey, receiptOf } from '../../../../src/shards/move/places.ts'
import type { Limit } from '../../../../src/store/store.ts'
import { recordOf } from '../../../../src/store/upstash/script.ts'
import { NEW, OLD, subjectFrom, useMovingShards } from '../../../support/moving.ts'
import { allowed, left, policy, row, take } from '../../../support/sharded-redis.ts'

const { send, isolate, plain, begin } = useMovingShards()

const moving = (from = 'eu-1') => subjectFrom(from, 'eu-3')
const keysAt = async (name: string) =>
  ((await send(name, 'KEYS', '*')) as string[]).filter((key) => key !== moveKey()).sort()
const log = (subject: string, change: Partial<Limit['terms']> = {}) =>
  row(subject, { terms: { ...policy, tag: 'l', algorithm: 'sliding-log', ...change } })
const slots = (subject: string, slot: string) =>
  row(subject, { terms: { ...policy, tag: 's', algorithm: 'concurrency' }, slot })
const peek = (...limits: Limit[]) => ({ mode: 'peek' as const, limits })

describe('a key before and after the beginning of its move', () => {
  test('Before it, the old place decides.', async () => {
    const [one, subject] = [isolate(), moving()]
    expect(left(await one.decide([take(row(subject))]))).toEqual([2])
    expect(left(await plain(OLD).decide([take(row(subject))]))).toEqual([1])
    expect(await keysAt('eu-3')).toEqual([])
  })

  test('After it, the new place continues the count of the old one.', async () => {
    const [one, subject] = [isolate(), moving()]
    await one.decide([take(row(subject))])
    await begin()
    expect(left(await one.decide([take(row(subject))]))).toEqual([1])
    expect(left(await isolate().decide([take(row(subject))]))).toEqual([0])
    expect(allowed(await isolate().decide([take(row(subject))]))).toEqual([false])
    const key = recordOf(subject)
    expect(await keysAt('eu-3')).toEqual([key, receiptOf(key)])
    expect(await send('eu-1', 'GET', key)).toMatch(/^moved;\d+;1;/)
    expect(left(await plain(NEW).decide([peek(row(subject))]))).toEqual([0])
  })

  test('A key that stays is decided at its place.', async () => {
    const [one, subject] = [isolate(), subjectFrom('eu-2', 'eu-2')]
    await begin()
    expect(left(await one.decide([take(row(subject))]))).toEqual([2])
    expect(await keysAt('eu-2')).toEqual([recordOf(subject)])
  })

  test('An isolate of the old layout cannot decide a marked key.', async () => {
    const [one, subject] = [isolate(), moving()]
    await one.decide([take(row(subject), log(subject))])
    await begin()
    await one.decide([peek(row(subject), log(subject))])
    for (const limit of [row(subject), log(subject)]) {
      await expect(plain(OLD).decide([take(limit)])).rejects.toThrow(StoreError)
    }
  })

  test('The first request of an isolate for a key makes two more calls, later ones none.', async () => {
    const subject = moving()
    await isolate().decide([take(row(subject))])
    await begin()
    const one = isolate()
    await one.decide([take(row(moving()))])
    await one.decide([peek(row(subject))])
    const before = await send('eu-1', 'INFO', 'commandstats')
    await one.decide([peek(row(subject))])
    const evals = (stats: unknown) => /cmdstat_(eval|evalsha):calls=\d+/g.exec(String(stats))?.[0]
    expect(evals(await send('eu-1', 'INFO', 'commandstats'))).toBe(evals(before))
  })
})

describe('what moves', () => {
  test.each([
    ['a fixed window', {}],
    ['a sliding window', { algorithm: 'sliding-window' }],
    ['a token bucket', { algorithm: 'token-bucket' }],
    ['a sliding log', { algorithm: 'sliding-log' }],
  ] as const)('The quota of %s.', async (_, change) => {
    const terms = { ...policy, ...change, windowMs: 86_400_000 * 2 }
    const limit = row(moving('eu-2'), { terms })
    await isolate().decide([take({ ...limit, cost: 2 })])
    await begin()
    expect(allowed(await isolate().decide([take({ ...limit, cost: 2 })]))).toEqual([false])
    expect(allowed(await isolate().decide([take(limit)]))).toEqual([true])
    expect(allowed(await isolate().decide([take(limit)]))).toEqual([false])
  })

  test('Slots: a request that began at the old place releases its slot at the new one.', async () => {
    const subject = moving()
    const one = isolate()
    for (const id of ['a', 'b', 'c']) await one.decide([take(slots(subject, id))])
    await begin()
    expect(allowed(await isolate().decide([take(slots(subject, 'd'))]))).toEqual([false])
    await one.decide([{ mode: 'refund', limits: [slots(subject, 'a')] }])
    expect(allowed(await isolate().decide([take(slots(subject, 'd'))]))).toEqual([true])
    expect(allowed(await isolate().decide([take(slots(subject, 'e'))]))).toEqual([false])
  })

  test('A released slot does not return when another isolate moves its key.', async () => {
    const subject = moving()
    const one = isolate()
    await one.decide([take(slots(subject, 'a'))])
    await begin()
    await one.decide([{ mode: 'refund', limits: [slots(subject, 'a')] }])
    expect(left(await isolate().decide([peek(slots(subject, 'b'))]))).toEqual([3])
  })

  test('A ban.', async () => {
    const penalty = { tag: 'p', after: 1, withinMs: 60_000, banMs: 60_000, maxMs: 60_000 }
    const limit = row(moving(), { penalty, cost: 4 })
    await isolate().decide([take(limit)])
    await begin()
    const { states } = await isolate().decide([take({ ...limit, cost: 1 })])
    expect(states[0]![0]!.bannedForMs).toBeGreaterThan(0)
    await isolate().decide([{ mode: 'unban', limits: [limit] }])
    expect(allowed(await isolate().decide([take({ ...limit, cost: 1 })]))).toEqual([true])
  })

  test('A refund of a charge from before the move.', async () => {
    const limit = row(moving())
    const { decidedAt } = await isolate().decide([take(limit)])
    await begin()
    const { states } = await isolate().decide([{ mode: 'refund', limits: [limit], decidedAt }])
    expect(states[0]![0]!.remaining).toBe(3)
    expect(left(await isolate().decide([peek(limit)]))).toEqual([3])
  })

  test('A reset applies to the state from before the move.', async () => {
    const subject = moving()
    await isolate().decide([take(row(subject, { cost: 3 }))])
    await isolate().decide([take({ ...log(subject), cost: 3 })])
    await begin()
    await isolate().decide([{ mode: 'reset', limits: [row(subject), log(subject)] }])
    expect(left(await isolate().decide([peek(row(subject), log(subject))]))).toEqual([3, 3])
  })
})

describe('requests with several keys', () => {
  test('All limits are charged or none, wherever their keys are.', async () => {
    const places = [['eu-1', 'eu-1'] as const, ['eu-1', 'eu-3'] as const, ['eu-2', 'eu-3'] as const]
    const limits = places.map(([from, to]) => row(subjectFrom(from, to)))
    const one = isolate()
    const check = async (list: number[]) =>
      expect(left(await isolate().decide([peek(...limits)]))).toEqual(list)
    await one.decide([take(...limits)])
    await begin()
    expect(allowed(await one.decide([take(...limits)]))).toEqual([true, true, true])
    await check([1, 1, 1])
    expect(allowed(await one.decide([take(limits[2]!)]))).toEqual([true])
    expect(allowed(await one.decide([take(...limits)]))).toEqual([true, true, false])
    await one.settled()
    expect(one.failures).toEqual([undefined])
    await check([1, 1, 0])
  })

  test('Lists of one call are decided each at its place.', async () => {
    const limits = [row(moving()), row(subjectFrom('eu-1', 'eu-1')), row(moving('eu-2'))]
    const lists = limits.map((limit) => [take(limit)])
    await isolate().decideEach(lists)
    await begin()
    const replies = await isolate().decideEach(lists)
    expect(replies.map((reply) => left(reply as never))).toEqual([[1], [1], [1]])
  })

  test('One shard of the new layout gets the keys of several old ones.', async () => {
    const layouts = { from: ['eu-1', 'eu-2'], to: ['eu-3'] }
    const limits = OLD.map((from) => row(subjectFrom(from, 'eu-3', [layouts.from, layouts.to])))
    await isolate(layouts).decide([take(...limits)])
    await begin(layouts.from, layouts.to)
    expect(left(await isolate(layouts).decide([take(...limits)]))).toEqual([1, 1])
    expect(left(await plain(['eu-3']).decide([peek(...limits)]))).toEqual([1, 1])
  })
})

describe('idempotent calls', () => {
  const idempotency = { key: 'once', fingerprint: 'print', forMs: 60_000 }

  test.each([
    ['one key', 1],
    ['keys in two shards', 2],
  ])('A call with %s from before the move is charged once.', async (_, count) => {
    const limits = [row(moving()), row(moving('eu-2'))].slice(0, count)
    const first = await isolate().decide([take(...limits)], { idempotency })
    await begin()
    const again = await isolate().decide([take(...limits)], { idempotency })
    expect(again).toEqual({ ...first, replayed: true })
    expect(left(await isolate().decide([peek(...limits)]))).toEqual(limits.map(() => 2))
  })

  test('A call during the move is charged once.', async () => {
    const limits = [row(moving()), row(moving('eu-2'))]
    await begin()
    await isolate().decide([take(...limits)], { idempotency })
    const { replayed } = await isolate().decide([take(...limits)], { idempotency })
    expect(replayed).toBe(true)
    expect(left(await isolate().decide([peek(...limits)]))).toEqual([2, 2])
  })

  test('Lists from before the move are charged once, and so are lists during it.', async () => {
    const subjects = [moving(), subjectFrom('eu-1', 'eu-1'), moving('eu-2')]
    const lists = subjects.map((subject) => [take(row(subject))])
    for (const begins of [false, true]) {
      if (begins) await begin()
      const key = begins ? 'during' : 'before'
      await isolate().decideEach(lists, { idempotency: { ...idempotency, key } })
      if (!begins) await begin()
      await isolate().decideEach(lists, { idempotency: { ...idempotency, key } })
      await isolate().decideEach(lists, { idempotency: { ...idempotency, key } })
    }
    expect(left(await isolate().decide([peek(...subjects.map((one) => row(one)))]))).toEqual([
      1, 1, 1,
    ])
  })
})

describe('a database that is down', () => {
  test('Without the old place, a key that has not moved is not decided, and a moved one is.', async () => {
    const [known, other] = [row(moving()), row(moving())]
    const one = isolate()
    await begin()
    await one.decide([take(known)])
    const cut = isolate({ away: ['eu-1'] })
    await expect(cut.decide([take(other)])).rejects.toMatchObject({ code: 'unreachable' })
    expect(await keysAt('eu-3')).toEqual([recordOf(known.subject)])
  })

  test('Without the new place, the value stays in its mark until the place is back.', async () => {
    const limit = row(moving())
    await isolate().decide([take(limit)])
    await begin()
    const cut = isolate({ away: ['eu-3'] })
    await expect(cut.decide([take(limit)])).rejects.toMatchObject({
      ...{ code: 'unreachable', store: 'eu-3' },
    })
    expect(await send('eu-1', 'GET', recordOf(limit.subject))).toMatch(/^moved;\d+;1;/)
    expect(left(await isolate().decide([take(limit)]))).toEqual([1])
  })

  test('After a failure an isolate asks the old place at most once a second.', async () => {
    const cut = isolate({ away: ['eu-3'] })
    const limit = row(moving())
    await isolate().decide([take(limit)])
    await begin()
    const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now())
    try {
      await expect(cut.decide([take(limit)])).rejects.toMatchObject({ code: 'unreachable' })
      await expect(cut.decide([take(limit)])).rejects.toMatchObject({ code: 'circuit-open' })
    } finally {
      now.mockRestore()
    }
  })

  test('After a clock is set back, an isolate asks again at once.', async () => {
    const limit = row(moving())
    await isolate().decide([take(limit)])
    await begin()
    const cut = isolate({ away: ['eu-3'] })
    await expect(cut.decide([take(limit)])).rejects.toMatchObject({ code: 'unreachable' })
    const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000)
    try {
      await expect(cut.decide([take(limit)])).rejects.toMatchObject({ code: 'unreachable' })
    } finally {
      now.mockRestore()
    }
  })

  test('Lists of one call whose new places answer are decided.', async () => {
    const layouts = { from: ['eu-1'], to: ['eu-2', 'eu-3'] }
    const limits = layouts.to.map((to) => row(subjectFrom('eu-1', to, [layouts.from, layouts.to])))
    const lists = limits.map((limit) => [take(limit)])
    await isolate(layouts).decideEach(lists)
    await begin(layouts.from, layouts.to)
    const replies = await isolate({ ...layouts, away: ['eu-3'] }).decideEach(lists)
    expect(replies[0]).toMatchObject({ states: [[{ allowed: true, remaining: 1 }]] })
    expect(replies[1]).toMatchObject({ code: 'unreachable', store: 'eu-3' })
  })
})
