/** What an object keeps in its memory and in its storage, and requests to several objects. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type {
  Limit,
  Store,
  StoreReply,
  StoreRequest,
  Terms,
} from '../../../../src/core/connection/store.ts'
import {
  createObjectStore,
  spreadBySubject,
} from '../../../../src/stores/durable-objects/objects.ts'
import { SluiceSubject } from '../../../../src/stores/durable-objects/subject.ts'
import { type Moment, memoryObjects } from '../../../support/memory-objects.ts'

const start = 1_789_000_000_000
let memory: ReturnType<typeof memoryObjects>
let store: Store
let refunded: string[][]
let meet: (moment: Moment) => void

beforeEach(() => {
  vi.useFakeTimers({ now: start })
  meet = () => {}
  memory = memoryObjects(SluiceSubject, (moment) => meet(moment))
  refunded = []
  store = spreadBySubject(
    createObjectStore({ objects: memory.objects, binding: 'SLUICE_SUBJECT', batching: true }),
    (subjects) => void refunded.push(subjects),
  )
})
afterEach(() => vi.useRealTimers())

const limitOf = (subject: string, terms: Partial<Terms> = {}): Limit => ({
  subject,
  terms: {
    tag: 't',
    algorithm: 'fixed-window',
    limit: 30,
    windowMs: 60_000,
    burst: 30,
    align: 'first-request',
    localShare: 1,
    ...terms,
  },
  cost: 1,
})
const take = (...limits: Limit[]): StoreRequest[] => [{ mode: 'take', limits }]
const remaining = async (limit: Limit) =>
  (await store.decide([{ mode: 'peek', limits: [limit] }])).states[0]![0]!.remaining
const recordOf = (name: string) =>
  (memory.at(name).rows.get('record') as { value: [string, { numbers: number[] }][] }).value

test('A call that is repeated with its id gets the same answer for five seconds, and is charged once.', async () => {
  const { subject } = memory.restart('a')
  const body = JSON.stringify({ id: 'one', lists: [take(limitOf('a'))] })
  const send = async () =>
    (await subject.fetch(new Request('http://object', { method: 'POST', body }))).text()
  const first = await send()
  vi.setSystemTime(start + 4_999)
  expect(await send()).toBe(first)
  expect(await remaining(limitOf('a'))).toBe(29)
  vi.setSystemTime(start + 5_000)
  expect(await send()).not.toBe(first)
})

test('A failed write charges nothing, in no row and not in memory.', async () => {
  const log = limitOf('a', { tag: 'l', algorithm: 'sliding-log' })
  await store.decide(take(limitOf('a'), log))
  vi.setSystemTime(start + 1000)
  const { subject } = memory.at('a')
  let writes = 0
  meet = (moment) => {
    if (moment === 'before put' && ++writes === 2) throw new Error('SQLITE_FULL')
  }
  await expect(store.decide(take(limitOf('a'), log))).rejects.toMatchObject({
    code: 'database-full',
  })
  expect(memory.at('a').subject).toBe(subject)
  expect(await remaining(limitOf('a'))).toBe(29)
  expect(await remaining(log)).toBe(29)
  expect(recordOf('a')[0]![1].numbers).toEqual([1])
})

test('Half a second after the last of several requests the exact count is stored.', async () => {
  for (let n = 0; n < 4; n++) await store.decide(take(limitOf('a')))
  expect(recordOf('a')[0]![1].numbers).toEqual([11])
  await vi.advanceTimersByTimeAsync(300)
  await store.decide(take(limitOf('a')))
  await vi.advanceTimersByTimeAsync(499)
  expect(recordOf('a')[0]![1].numbers).toEqual([11])
  await vi.advanceTimersByTimeAsync(1)
  expect(recordOf('a')[0]![1].numbers).toEqual([5])
  memory.restart('a')
  expect(await remaining(limitOf('a'))).toBe(25)
})

test('The alarm deletes expired rows an hour after their end, and then the storage.', async () => {
  const log = limitOf('a', { tag: 'l', algorithm: 'sliding-log', windowMs: 3 * 3_600_000 })
  await store.decide(take(limitOf('a'), log))
  const { subject, rows, alarmAt } = memory.at('a')
  expect(alarmAt).toBe(start + 60_000 + 3_600_000)
  vi.setSystemTime(alarmAt!)
  await subject.alarm()
  expect([...rows.keys()]).toEqual(['log:l'])
  expect(await remaining(log)).toBe(29)
  expect(memory.at('a').alarmAt).toBe(start + 4 * 3_600_000)
  vi.setSystemTime(start + 4 * 3_600_000)
  await subject.alarm()
  expect(rows.size).toBe(0)
})

test('What has ended by the clock of the caller counts again if this clock moves back.', async () => {
  const slots = (slot: string): Limit => ({
    ...limitOf('a', { tag: 's', algorithm: 'concurrency' }),
    slot,
  })
  for (const slot of ['one', 'two']) {
    await store.decide(take(limitOf('a'), slots(slot)), { now: start })
  }
  const later = { now: start + 10 * 86_400_000 }
  await store.decide([{ mode: 'refund', limits: [slots('one')] }], later)
  await memory.at('a').subject.alarm()
  memory.restart('a')
  const peek: StoreRequest[] = [{ mode: 'peek', limits: [limitOf('a'), slots('three')] }]
  const { states } = await store.decide(peek, { now: start })
  expect(states[0]!.map(({ remaining }) => remaining)).toEqual([28, 29])
})

test('A reply that has ended by the clock of another caller is there for one whose clock is right.', async () => {
  const once = (now: number) => {
    const idempotency = { key: 'k', fingerprint: 'one', forMs: 10_000 }
    return store.decide(take(limitOf('a')), { now, idempotency })
  }
  const first = await once(start - 3)
  await store.decide(take(limitOf('a')), { now: start + 10 * 86_400_000 })
  for (const restarted of [false, true]) {
    if (restarted) memory.restart('a')
    expect(await once(start)).toEqual({ ...first, replayed: true })
  }
})

test('The alarm of a window that never ends is at most a year away.', async () => {
  await store.decide(take(limitOf('a', { windowMs: 2 ** 45 })))
  expect(memory.at('a').alarmAt).toBe(start + 365 * 86_400_000)
})

test('A request that one of several objects refuses is refunded by the others.', async () => {
  const full = limitOf('b', { limit: 1 })
  await store.decide(take(full))
  const work: Promise<unknown>[] = []
  const reply = await store.decide(take(limitOf('a'), full), {
    waitUntil: (one) => void work.push(one),
  })
  expect(reply.states[0]!.map(({ allowed }) => allowed)).toEqual([true, false])
  await Promise.all(work)
  expect(refunded).toEqual([['a']])
  expect(await remaining(limitOf('a'))).toBe(30)
})

test('Concurrent lists for one subject share calls, and each gets its reply.', async () => {
  const waitUntil = () => {}
  const options = { waitUntil, deadlineMs: 5_000 }
  const replies = Promise.all(
    Array.from({ length: 20 }, () => store.decide(take(limitOf('a', { limit: 12 })), options)),
  )
  const fetched = vi.spyOn(memory.restart('a').subject, 'fetch')
  await vi.advanceTimersByTimeAsync(100)
  const admitted = (await replies).filter(({ states }: StoreReply) => states[0]![0]!.allowed)
  expect(admitted).toHaveLength(12)
  expect(fetched.mock.calls.length).toBeLessThan(5)
})

test('The reply to an idempotency key is kept while it is of use: the next decision after its end deletes it.', async () => {
  const limit = limitOf('a', { limit: 1_000 })
  const keyed = (key: string) =>
    store.decide(take(limit), { idempotency: { key, fingerprint: 'one', forMs: 60_000 } })
  const replies = () =>
    [...memory.at('a').rows.keys()].filter((key) => key.startsWith('reply:')).length
  for (let second = 0; second < 180; second++) {
    await keyed(`k${second}`)
    expect(replies()).toBe(Math.min(second + 1, 60))
    expect((await keyed(`k${Math.max(0, second - 59)}`)).replayed).toBe(true)
    vi.advanceTimersByTime(1_000)
  }
  vi.advanceTimersByTime(60_000)
  await store.decide(take(limit))
  expect(replies()).toBe(0)
  expect((await keyed('k179')).replayed).toBeUndefined()
  expect(await remaining(limit)).toBe(1_000 - 2)
})

test('An alarm deletes the replies of an earlier life of the object, and keeps what still counts.', async () => {
  const limit = limitOf('a', { windowMs: 10 * 3_600_000 })
  for (const key of ['one', 'two'])
    await store.decide(take(limit), { idempotency: { key, fingerprint: 'one', forMs: 60_000 } })
  vi.advanceTimersByTime(1_000) // the exact counts are written
  memory.restart('a')
  vi.setSystemTime(start + 2 * 3_600_000)
  await memory.alarm('a')
  expect([...memory.at('a').rows.keys()]).toEqual(['record'])
  expect(await remaining(limit)).toBe(28)
})
