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
  useSplitRedis,
} from '../../../support/split-redis.ts'
import { storeOf } from '../../../support/store-of.ts'

const { newStore, httpOf } = useSplitRedis()

describe('a request to several parts', () => {
  test('A request of one part makes one call to its database, and no call to the others.', async () => {
    const { store } = newStore()
    const subject = subjectAt('part-2')
    const limits = [row(subject), row(subject, { terms: { ...policy, tag: 'u' } })]
    const ask = () => store.decide([take(limits[0]!), follow(limits[1]!)])
    expect(await httpOf(ask)).toEqual([0, 1, 0])
    expect(
      await httpOf(() => store.decideEach([[take(...limits)], [follow(limits[1]!)]], {})),
    ).toEqual([0, 1, 0])
    const { states } = await ask()
    expect(states.flat().some(({ decidedAt: at }) => at)).toBe(false)
  })

  test('A request of two parts makes concurrent calls to both databases.', async () => {
    let calls = 0
    const both = Promise.withResolvers<void>()
    const { store } = newStore([], (store) =>
      storeOf(async (...call) => {
        if (++calls === 2) both.resolve()
        await both.promise // serial calls would never resolve it
        return store.decide(...call)
      }),
    )
    const limits = [row(subjectAt('part-1')), row(subjectAt('part-3'))]
    const reply = await store.decide([take(...limits)])
    expect(left(reply)).toEqual([2, 2])
    expect(allowed(reply)).toEqual([true, true])
    for (const { decidedAt: at } of reply.states.flat())
      expect(at).toBeGreaterThanOrEqual(reply.decidedAt)
  })

  test('A request that one part refuses is refunded by the others, and its reply has their states before the charge.', async () => {
    const { store, refunded, waitUntil, settled } = newStore()
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    await store.decide([take(row(b, { cost: 3 }))])
    await store.decide([take(row(a))])
    const reply = await store.decide([take(row(a), row(b), row(c))], { waitUntil })
    expect(allowed(reply)).toEqual([true, false, true])
    expect(left(reply)).toEqual([2, 0, 3])
    await settled()
    expect(refunded.flat().sort()).toEqual([a, c].sort())
    expect(await peek(store, a, b, c)).toEqual([2, 0, 3])
  })

  test('A refused request is refunded even if its client has disconnected.', async () => {
    const background: Promise<unknown>[] = []
    const waitUntil = (promise: Promise<unknown>) => void background.push(promise)
    const answer = Promise.withResolvers<void>()
    const { store } = newStore([], (store) =>
      storeOf((...call) => store.decide(...call).finally(() => answer.promise)),
    )
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    void store.decide([take(row(a), row(b, { cost: 4 }))], { waitUntil })
    // The isolate runs only until the promises passed to `waitUntil` settle.
    const firstWork = Promise.all(background)
    answer.resolve()
    await firstWork
    await Promise.all(background)
    expect(await peek(store, a)).toEqual([3])
  })

  test('A request that all parts refuse refunds nothing.', async () => {
    const { store, refunded, waitUntil, settled } = newStore()
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    expect(
      allowed(await store.decide([take(row(a, { cost: 4 }), row(b, { cost: 4 }))], { waitUntil })),
    ).toEqual([false, false])
    await settled()
    expect(refunded).toEqual([])
  })

  test('A refused request releases its slots by their id.', async () => {
    const { store, waitUntil, settled } = newStore()
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    const slots = { ...policy, algorithm: 'concurrency' as const }
    await store.decide([take(row(b, { cost: 3 }))])
    const held = row(a, { terms: slots, slot: 'own' })
    await store.decide([take(held, row(b))], { waitUntil })
    await settled()
    expect(left(await store.decide([{ mode: 'peek', limits: [held] }]))).toEqual([3])
  })

  test('Each part refunds by its own clock, however much the clocks differ.', async () => {
    const start = Date.now()
    const clocks: Record<string, number> = { 'part-1': start + 60_000, 'part-2': start - 60_000 }
    const { store, waitUntil, settled } = newStore([], (store, name) =>
      storeOf((list, options) => store.decide(list, { ...options, now: clocks[name]! })),
    )
    const [a, b] = [subjectAt('part-1'), subjectAt('part-2')]
    const { decidedAt: now, states } = await store.decide([take(row(a), row(b))])
    expect(now).toBe(start - 60_000)
    expect(states.flat().map(({ decidedAt: at }) => at)).toEqual([start + 60_000, start - 60_000])
    for (const full of [a, b]) {
      const [x, y] = [subjectAt('part-1'), subjectAt('part-2')]
      // The windows that this request opens return to their state before it.
      const limits = [row(full, { cost: 3 }), ...(full === a ? [row(y)] : [row(x)])]
      await store.decide([take(...limits)], { waitUntil })
      await settled()
      expect(await peek(store, x, y)).toEqual([3, 3])
    }
  })
})

describe('a follow in another part', () => {
  test('A follow in another part is refunded if the request is refused, and its reply has the state without the charge.', async () => {
    const { store, waitUntil, settled } = newStore()
    const [a, b, c] = names.map(subjectAt) as [string, string, string]
    await store.decide([take(row(a, { cost: 3 })), take(row(c, { cost: 2 }))])
    const list = [take(row(a)), follow(row(b)), follow(row(c, { cost: 2 }))]
    const reply = await store.decide(list, { waitUntil })
    await settled()
    expect(left(reply)).toEqual([0, 3, 1])
    expect(allowed(reply)).toEqual([false, true, false])
    expect(await peek(store, a, b, c)).toEqual([0, 3, 1])
  })
})

test('A reset reaches the database of its key.', async () => {
  const { store } = newStore()
  for (const subject of names.map(subjectAt)) {
    await store.decide([take(row(subject, { cost: 2 }))])
    const [reply] = await store.decideEach([[{ mode: 'reset', limits: [row(subject)] }]], {})
    expect(left(reply as StoreReply)).toEqual([3])
  }
})
