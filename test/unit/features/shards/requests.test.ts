/** Requests over several databases: the calls to each database, and the charges and refunds in each. */
import { describe, expect, test } from 'vitest'
import type { StoreReply } from '../../../../src/core/connection/store.ts'
import {
  allowed,
  follow,
  left,
  names,
  peek,
  policy,
  row,
  subjectAt,
  take,
  useShardedRedis,
} from '../../../support/sharded-redis.ts'

const { newShards, httpOf } = useShardedRedis()

describe('a request to several shards', () => {
  test('A request of one shard makes one call to its database, and no call to the others.', async () => {
    const { shards } = newShards()
    const subject = subjectAt('eu-2')
    const limits = [row(subject), row(subject, { terms: { ...policy, tag: 'u' } })]
    const ask = () => shards.decide([take(limits[0]!), follow(limits[1]!)])
    expect(await httpOf(ask)).toEqual([0, 1, 0])
    expect(
      await httpOf(() => shards.decideEach([[take(...limits)], [follow(limits[1]!)]])),
    ).toEqual([0, 1, 0])
    const { states } = await ask()
    expect(states.flat().some(({ decidedAt: at }) => at)).toBe(false)
  })

  test('A request of two shards makes concurrent calls to both databases.', async () => {
    let calls = 0
    const both = Promise.withResolvers<void>()
    const { shards } = newShards([], (store) => ({
      ...store,
      async decide(...call) {
        if (++calls === 2) both.resolve()
        await both.promise // serial calls would never resolve it
        return store.decide(...call)
      },
    }))
    const limits = [row(subjectAt('eu-1')), row(subjectAt('eu-3'))]
    const reply = await shards.decide([take(...limits)])
    expect(left(reply)).toEqual([2, 2])
    expect(allowed(reply)).toEqual([true, true])
    for (const { decidedAt: at } of reply.states.flat())
      expect(at).toBeGreaterThanOrEqual(reply.decidedAt)
  })

  test('A request that one shard refuses is refunded by the others, and its reply has their states before the charge.', async () => {
    const { shards, refunded, waitUntil, settled } = newShards()
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    await shards.decide([take(row(b, { cost: 3 }))])
    await shards.decide([take(row(a))])
    const reply = await shards.decide([take(row(a), row(b), row(c))], { waitUntil })
    expect(allowed(reply)).toEqual([true, false, true])
    expect(left(reply)).toEqual([2, 0, 3])
    await settled()
    expect(refunded.flat().sort()).toEqual([a, c].sort())
    expect(await peek(shards, a, b, c)).toEqual([2, 0, 3])
  })

  test('A refused request is refunded even if its client has disconnected.', async () => {
    const background: Promise<unknown>[] = []
    const waitUntil = (promise: Promise<unknown>) => void background.push(promise)
    const answer = Promise.withResolvers<void>()
    const { shards } = newShards([], (store) => ({
      ...store,
      decide: (...call) => store.decide(...call).finally(() => answer.promise),
    }))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    void shards.decide([take(row(a), row(b, { cost: 4 }))], { waitUntil })
    // The isolate runs only until the promises passed to `waitUntil` settle.
    const firstWork = Promise.all(background)
    answer.resolve()
    await firstWork
    await Promise.all(background)
    expect(await peek(shards, a)).toEqual([3])
  })

  test('A request that all shards refuse refunds nothing.', async () => {
    const { shards, refunded, waitUntil, settled } = newShards()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    expect(
      allowed(await shards.decide([take(row(a, { cost: 4 }), row(b, { cost: 4 }))], { waitUntil })),
    ).toEqual([false, false])
    await settled()
    expect(refunded).toEqual([])
  })

  test('A refused request releases its slots by their id.', async () => {
    const { shards, waitUntil, settled } = newShards()
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const slots = { ...policy, algorithm: 'concurrency' as const }
    await shards.decide([take(row(b, { cost: 3 }))])
    const held = row(a, { terms: slots, slot: 'own' })
    await shards.decide([take(held, row(b))], { waitUntil })
    await settled()
    expect(left(await shards.decide([{ mode: 'peek', limits: [held] }]))).toEqual([3])
  })

  test('Each shard refunds by its own clock, however much the clocks differ.', async () => {
    const start = Date.now()
    const clocks: Record<string, number> = { 'eu-1': start + 60_000, 'eu-2': start - 60_000 }
    const { shards, waitUntil, settled } = newShards([], (store, name) => ({
      ...store,
      decide: (list, options) => store.decide(list, { ...options, now: clocks[name]! }),
    }))
    const [a, b] = [subjectAt('eu-1'), subjectAt('eu-2')]
    const { decidedAt: now, states } = await shards.decide([take(row(a), row(b))])
    expect(now).toBe(start - 60_000)
    expect(states.flat().map(({ decidedAt: at }) => at)).toEqual([start + 60_000, start - 60_000])
    for (const full of [a, b]) {
      const [x, y] = [subjectAt('eu-1'), subjectAt('eu-2')]
      // The windows that this request opens return to their state before it.
      const limits = [row(full, { cost: 3 }), ...(full === a ? [row(y)] : [row(x)])]
      await shards.decide([take(...limits)], { waitUntil })
      await settled()
      expect(await peek(shards, x, y)).toEqual([3, 3])
    }
  })
})

describe('a follow in another shard', () => {
  test('A follow in another shard is refunded if the request is refused, and its reply has the state without the charge.', async () => {
    const { shards, waitUntil, settled } = newShards()
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    await shards.decide([take(row(a, { cost: 3 })), take(row(c, { cost: 2 }))])
    const list = [take(row(a)), follow(row(b)), follow(row(c, { cost: 2 }))]
    const reply = await shards.decide(list, { waitUntil })
    await settled()
    expect(left(reply)).toEqual([0, 3, 1])
    expect(allowed(reply)).toEqual([false, true, false])
    expect(await peek(shards, a, b, c)).toEqual([0, 3, 1])
  })
})

test('A reset reaches the database of its key.', async () => {
  const { shards } = newShards()
  for (const subject of names.map(subjectAt)) {
    await shards.decide([take(row(subject, { cost: 2 }))])
    const [reply] = await shards.decideEach([[{ mode: 'reset', limits: [row(subject)] }]])
    expect(left(reply as StoreReply)).toEqual([3])
  }
})
