/** Requests to a Redis Cluster: the HTTP requests and script calls that they make, and the errors of their parts. */
import { startBridge } from 'sluice-upstash-bridge'
import { describe, expect, test } from 'vitest'
import { StoreError } from '../../src/core/base/errors.ts'
import type { Limit, StoreReply, StoreRequest } from '../../src/core/connection/store.ts'
import { recordOf } from '../../src/core/connection/upstash/script.ts'
import { beginCall, createMeter } from '../../src/features/observe/measure.ts'
import { subjectAt, useCluster } from '../support/cluster.ts'
import { allowed, follow, left, peek, policy, row, take } from '../support/split-redis.ts'
import { newSubject } from '../support/subjects.ts'

const { running, newStore: newStoreBy, httpOf } = useCluster()

/** A store whose clock stands still: requests that are begun together are of one millisecond, also on a busy machine. */
const newStore = (change?: Parameters<typeof newStoreBy>[0]) => newStoreBy(change, () => NOW)
const NOW = Date.now()

/** The calls of the script that each master has run. */
async function scriptCalls() {
  const counts = await Promise.all(
    [0, 1, 2].map(async (node) => {
      const info = await running.admin.info(node, 'commandstats')
      return [...info.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
        (sum, [, calls]) => sum + Number(calls),
        0,
      )
    }),
  )
  return counts.reduce((sum, calls) => sum + calls, 0)
}

const flushScripts = () =>
  Promise.all([0, 1, 2].map((node) => running.admin.ask(node, 'SCRIPT', 'FLUSH')))

const codes = (replies: (StoreReply | StoreError)[]) =>
  replies.map((reply) => (reply instanceof StoreError ? reply.message : left(reply)))

describe('a batch', () => {
  test('Concurrent requests with keys in many slots share one HTTP request, with one call of the script for each slot.', async () => {
    const { store, waitUntil } = newStore()
    const [first, one, two] = [subjectAt(0), subjectAt(1), subjectAt(2)]
    await store.decide([take(row(first))])
    await peek(store, first, one, two) // loads the script on each node
    const before = await scriptCalls()
    const replies: StoreReply[][] = []
    const http = await httpOf(async () => {
      const asks = [first, one, two, one, first, one, one].map((subject) =>
        store.decide([take(row(subject))], { waitUntil }),
      )
      replies.push(await Promise.all(asks))
    })
    expect(http).toBe(2) // the first request leaves at once, the others in a batch
    expect((await scriptCalls()) - before).toBe(1 + 3)
    expect(replies[0]!.map(left)).toEqual([[1], [2], [2], [1], [0], [0], [0]])
    expect(replies[0]!.flatMap(allowed)).toEqual([true, true, true, true, true, true, false])
  })

  test('Requests with limits in several slots join a batch with all of their parts.', async () => {
    const { store, waitUntil, settled } = newStore()
    const pairs = Array.from({ length: 4 }, () => [subjectAt(0), subjectAt(1)] as const)
    const [busy] = pairs
    await peek(store, newSubject())
    const http = await httpOf(async () => {
      const asks = pairs.map(([a, b]) => store.decide([take(row(a), row(b))], { waitUntil }))
      expect((await Promise.all(asks)).map(left)).toEqual(pairs.map(() => [2, 2]))
    })
    expect(http).toBe(2)
    await settled()
    expect(await peek(store, ...busy!)).toEqual([2, 2])
  })

  test('A meter counts the share of each part in the call of its batch.', async () => {
    const { store, waitUntil } = newStore({
      observer: { begin: (sent) => beginCall(sent, () => {}, Date.now) },
    })
    const pair = [row(subjectAt(0)), row(subjectAt(1))]
    const meters = [createMeter(Date.now), createMeter(Date.now), createMeter(Date.now, 2)]
    const [alone, inBatch, list] = meters.map(({ onCall }) => ({ waitUntil, onCall }))
    await Promise.all([
      store.decide([take(...pair)], alone),
      store.decide([take(...pair)], inBatch),
      store.decideEach([[take(row(subjectAt(2)))], [take(row(subjectAt(2)))]], list!),
    ])
    // The first request leaves at once. The batch has two parts of the second one, and two lists.
    expect(meters.map((meter) => meter.stop().calls)).toEqual([1, 2 / 4, 1 / 4])
  })

  test('A key with a wrong type fails its own request, and the others are decided once.', async () => {
    const { store, waitUntil } = newStore()
    const [broken, healthy] = [subjectAt(0), subjectAt(0)]
    await running.admin.ask(0, 'LPUSH', recordOf(broken), 'x')
    const lists = [[take(row(healthy))], [take(row(broken))], [take(row(subjectAt(1)))]]
    expect(codes(await store.decideEach(lists, { waitUntil }))).toEqual([
      [2],
      'redis-error: Redis refused the command (WRONGTYPE)',
      [2],
    ])
    expect(await peek(store, healthy)).toEqual([2])
  })
})

describe('a request with limits in several slots', () => {
  test('It makes one HTTP request, and is charged in each slot.', async () => {
    const { store } = newStore()
    const subjects = [subjectAt(0), subjectAt(1), subjectAt(2), subjectAt(2)]
    const http = await httpOf(async () => {
      const list = [take(...subjects.slice(0, 3).map((one) => row(one))), follow(row(subjects[3]!))]
      expect(left(await store.decide(list))).toEqual([2, 2, 2, 2])
    })
    expect(http).toBe(1)
    expect(await peek(store, ...subjects)).toEqual([2, 2, 2, 2])
  })

  test('If one slot fails, onStoreError answers for it, and the other slots decide.', async () => {
    const { store } = newStore()
    const [a, b] = [subjectAt(0), subjectAt(1)]
    await running.admin.ask(1, 'LPUSH', recordOf(b), 'x')
    const { states } = await store.decide([take(row(a), row(b))], { fallback: true })
    expect(states[0]).toMatchObject([
      { allowed: true, remaining: 2 },
      { allowed: true, fallback: { by: 'allow' } },
    ])
    await expect(store.decide([take(row(a), row(b))])).rejects.toThrow('WRONGTYPE')
  })

  test('Slots of concurrency limits, logs and bans are charged and released in their own slots of the cluster.', async () => {
    const { store, waitUntil, settled } = newStore()
    const [a, b] = [subjectAt(0), subjectAt(1)]
    const held = row(a, { terms: { ...policy, algorithm: 'concurrency', limit: 1 }, slot: 'one' })
    const penalty = { tag: 'p', after: 1, withinMs: 60_000, banMs: 60_000, maxMs: 60_000 }
    const logged = row(b, { terms: { ...policy, algorithm: 'sliding-log', limit: 1 }, penalty })
    expect(allowed(await store.decide([take(held, logged)], { waitUntil }))).toEqual([true, true])
    await store.decideEach([[{ mode: 'refund', limits: [held] }]], { waitUntil })
    const again = [take({ ...held, slot: 'two' }, logged)]
    const reply = await store.decide(again, { waitUntil })
    expect(allowed(reply)).toEqual([true, false])
    expect(reply.states[0]![1]!.bannedForMs).toBeGreaterThan(0)
    await settled()
    const slots: Limit = { ...held, cost: 0 }
    expect(left(await store.decide([{ mode: 'peek', limits: [slots] }]))).toEqual([1])
  })

  test('With the time of the isolate, all slots decide at that time.', async () => {
    const { store } = newStore({ clock: 'edge' })
    const before = Date.now()
    const reply = await store.decide([take(row(subjectAt(0)), row(subjectAt(1)))])
    const times = reply.states.flat().map(({ decidedAt }) => decidedAt!)
    expect(times[0]).toBe(times[1])
    expect(times[0]).toBeGreaterThanOrEqual(before)
    expect(times[0]).toBeLessThanOrEqual(Date.now())
  })
})

test('A lease holds units of a key in one slot, and its isolate spends them without a call.', async () => {
  const { store, waitUntil } = newStore()
  const terms = { ...policy, limit: 100, burst: 100, lease: { max: 10, ttlMs: 60_000 } }
  const list: StoreRequest[] = [take(row(subjectAt(2), { terms }))]
  const http = await httpOf(async () => {
    for (let n = 0; n < 20; n++) {
      expect(left(await store.decide(list, { waitUntil }))).toEqual([99 - n])
    }
  })
  expect(http).toBeLessThan(15)
})

describe('a call with an idempotency key', () => {
  const newKey = () => ({ key: `once-${newSubject()}`, fingerprint: 'f', forMs: 60_000 })

  test('A repeated call is a replay in each slot, and charges nothing.', async () => {
    const { store, waitUntil, settled } = newStore()
    const [a, b, c] = [subjectAt(0), subjectAt(1), subjectAt(2)]
    const options = { idempotency: newKey(), waitUntil }
    const lists = [[take(row(a), row(b))], [take(row(c))], [take(row(a))]]
    const first = await store.decideEach(lists, options)
    expect(codes(first)).toEqual([[2, 2], [2], [1]])
    expect(await store.decideEach(lists, options)).toEqual(
      first.map((reply) => ({ ...reply, replayed: true })),
    )
    await settled()
    expect(await peek(store, a, b, c)).toEqual([1, 2, 2])
  })
})

describe('nodes without the script', () => {
  test('The bridge loads the script on each node, and every list is decided once.', async () => {
    const { store } = newStore()
    const subjects = [subjectAt(0), subjectAt(1), subjectAt(2)]
    await peek(store, newSubject())
    await flushScripts()
    const http = await httpOf(() => store.decide([take(...subjects.map((one) => row(one)))]))
    expect(http).toBe(1)
    expect(await peek(store, ...subjects)).toEqual([2, 2, 2])
  })

  test('After a restart of the bridge the parts without the script are sent again, and every list is decided once.', async () => {
    const { store } = newStore()
    const subjects = [subjectAt(0), subjectAt(1), subjectAt(2)]
    await peek(store, newSubject())
    const { port } = new URL(running.bridge.url)
    await running.bridge.close()
    await flushScripts()
    running.bridge = await startBridge({ cluster: running.admin.urls, port: Number(port) })
    const http = await httpOf(() => store.decide([take(...subjects.map((one) => row(one)))]))
    expect(http).toBe(2)
    expect(await peek(store, ...subjects)).toEqual([2, 2, 2])
  })
})

test('Without `cluster` a batch with keys in several slots fails with an error that says what to write.', async () => {
  const { upstash } = newStore()
  const [reply] = await upstash.decideEach(
    [[take(row(subjectAt(0)))], [take(row(subjectAt(1)))]],
    {},
  )
  expect(reply).toMatchObject({
    message:
      "redis-error: Redis refused the command (CROSSSLOT: write use: [cluster()] with cluster from 'sluice/features')",
  })
})
