/** The object of a subject in workerd: what it writes, and what it knows after it has lost its memory. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type {
  Limit,
  StoreReply,
  StoreRequest,
  Terms,
} from '../../../../src/core/connection/store.ts'
import { AHEAD_MS, STEP } from '../../../../src/stores/durable-objects/ahead.ts'
import { isLong } from '../../../support/long.ts'
import { useObjects } from '../../../support/objects.ts'
import type { Moment } from '../../../support/objects-worker.ts'
import { newSubject } from '../../../support/subjects.ts'

const { store, call, evict } = useObjects()
const day = 86_400_000

const limitOf = (subject: string, terms: Partial<Terms> = {}, cost = 1): Limit => ({
  subject,
  terms: {
    tag: 't',
    algorithm: 'fixed-window',
    limit: 300,
    windowMs: day,
    burst: 300,
    align: 'first-request',
    localShare: 1,
    ...terms,
  },
  cost,
})

const ask = (mode: 'take' | 'peek' | 'debt', ...limits: Limit[]) =>
  store.decide([{ mode, limits }] as StoreRequest[])
const isAdmitted = ({ states }: StoreReply) => states[0]!.every(({ allowed }) => allowed)

/** Ends an object at once. An eviction first lets its timer write the exact counts. */
const abort = (subject: string) => call('/abort', subject)

/** Takes units one after the other, in one request to the Worker. */
const takeAll = (limit: Limit, takes: number) =>
  Promise.allSettled(Array.from({ length: takes }, () => ask('take', limit)))

/** The number of admitted takes. */
async function admitted(limit: Limit, takes: number): Promise<number> {
  const replies = (await takeAll(limit, takes)).map((one) => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
  return replies.filter(isAdmitted).length
}

const rowsOf = async (subject: string) => {
  const rows = await call<string[]>('/rows', subject)
  return { record: rows.filter((key) => key === 'record').length, rows }
}

test('A dense subject writes one row for ten decisions, and a refusal writes none.', async () => {
  const limit = limitOf(newSubject())
  // A busy machine may pause the calls, and the object writes its exact count in a pause of 500 ms.
  let pauses = 0
  for (let n = 0; n < 300; n += 10) {
    const sentAt = performance.now()
    expect(await admitted(limit, 10)).toBe(10)
    if (performance.now() - sentAt > 200) pauses += 1
  }
  const { record, rows } = await rowsOf(limit.subject)
  expect(record).toBeGreaterThanOrEqual(300 / STEP)
  expect(record).toBeLessThanOrEqual(300 / STEP + 2 + 2 * pauses)
  expect(rows.filter((key) => key !== 'record')).toEqual(['alarm'])
  expect(await admitted(limit, 5)).toBe(0)
  expect(await rowsOf(limit.subject)).toEqual({ record: 0, rows: [] })
})

test('The first decision of a subject writes its exact count.', async () => {
  const limit = limitOf(newSubject())
  await ask('take', limit)
  const [row] = await call<[string, { value: unknown }][]>('/dump', limit.subject)
  expect(row).toMatchObject(['record', { value: [['t', { numbers: [1] }]] }])
})

test('An object writes its exact counts once its subject is quiet.', async () => {
  const limit = limitOf(newSubject())
  await admitted(limit, 23)
  await sleep(AHEAD_MS * 3)
  await evict(limit.subject).catch(() => {}) // workerd may have done so, on a busy machine
  expect((await ask('peek', limit)).states[0]![0]!.remaining).toBe(300 - 23)
})

test.each([
  ['fixed-window', 0],
  ['sliding-window', 0],
  ['token-bucket', 1],
  ['sliding-log', 0],
] as const)(
  '%s: An object that loses its memory at any point never admits too much, and at most a step too little.',
  async (algorithm, refill) => {
    for (const lost of isLong ? [1, 2, 3, 9, 10, 11, 12, 15] : [1, 9, 11, 12]) {
      const limit = limitOf(newSubject(), { algorithm, limit: 15, burst: 15 })
      const before = await admitted(limit, lost)
      await abort(limit.subject)
      const all = before + (await admitted(limit, 17))
      expect(all).toBeLessThanOrEqual(15)
      const least = algorithm === 'sliding-log' ? 15 : 15 - (STEP - 1) - refill
      expect(all).toBeGreaterThanOrEqual(least)
    }
  },
)

const moments: Moment[] = [
  'before getAlarm',
  'after getAlarm',
  'before call',
  'after get',
  'before put',
  'after put',
  'after transaction',
  'before setAlarm',
  'after setAlarm',
  'after call',
]

test.each([
  ['fixed-window', 0],
  ['sliding-window', 0],
  ['token-bucket', 1],
  ['sliding-log', 0],
] as const)(
  '%s: An object that is aborted at any moment never admits too much, and at most a step and the request of that moment too little.',
  async (algorithm, refill) => {
    for (const moment of moments) {
      const limit = limitOf(newSubject(), { algorithm, limit: 24, burst: 24 })
      // The alarm is read when an object starts, the record soon after, and the alarm is set by the first write.
      const before = /Alarm|get/.test(moment) ? 0 : await admitted(limit, 12)
      await call('/crash', limit.subject, moment)
      const replies = await takeAll(limit, 26)
      const failed = replies.filter(({ status }) => status === 'rejected').length
      const all =
        before + replies.filter((one) => one.status === 'fulfilled' && isAdmitted(one.value)).length
      expect(await call('/crash', limit.subject, null), `${moment} has come`).toBeNull()
      expect(all, moment).toBeLessThanOrEqual(24)
      const step = algorithm === 'sliding-log' ? 0 : STEP - 1
      expect(all + failed, moment).toBeGreaterThanOrEqual(24 - step - refill)
      expect(failed, moment).toBeLessThanOrEqual(1)
    }
  },
)

test('An object that is aborted while its timer writes the exact count has the count that was stored.', async () => {
  const limit = limitOf(newSubject(), { limit: 30 })
  await admitted(limit, 3)
  await call('/crash', limit.subject, 'before put')
  await sleep(AHEAD_MS)
  expect(await call('/crash', limit.subject, null)).toBeNull()
  expect(await admitted(limit, 40)).toBe(30 - 3 - 8) // 11 were stored
})

test('An object that loses its memory before each request admits exactly the limit.', async () => {
  const limit = limitOf(newSubject(), { limit: 12 })
  let all = 0
  for (let n = 0; n < 20; n++) {
    await evict(limit.subject).catch(() => {}) // before its first request there is no object
    all += await admitted(limit, 1)
  }
  expect(all).toBe(12)
})

test('A write that fails charges nothing and fails the decision.', async () => {
  const limit = limitOf(newSubject(), { limit: 5 })
  await ask('take', limit)
  await call('/fail', limit.subject, 1)
  await expect(ask('take', limit)).rejects.toMatchObject({ code: 'database-full' })
  expect((await ask('peek', limit)).states[0]![0]!.remaining).toBe(4)
})

test('A write that fails leaves no part of its decision: neither the log nor the record is charged.', async () => {
  const subject = newSubject()
  const log = limitOf(subject, { tag: 'l', algorithm: 'sliding-log', limit: 5 })
  const window = limitOf(subject, { limit: 5 })
  await call('/fail', subject, 2) // the second write of the decision
  await expect(ask('take', window, log)).rejects.toMatchObject({ code: 'database-full' })
  const { states } = await ask('peek', window, log)
  expect(states[0]!.map(({ remaining }) => remaining)).toEqual([5, 5])
})

test('The limits of a bucket hold under every plan after a lost memory.', async () => {
  const subject = newSubject()
  const slow = limitOf(subject, { algorithm: 'token-bucket', limit: 1, windowMs: 1000, burst: 20 })
  const fast = limitOf(subject, { algorithm: 'token-bucket', limit: 50, windowMs: 1000, burst: 20 })
  const start = Date.now()
  const before = await admitted(slow, 15)
  await abort(subject)
  const after = await admitted(fast, 60)
  expect(before + after).toBeLessThanOrEqual(20 + (50 * (Date.now() - start)) / 1000 + 1)
})

test('A call that is repeated with its id is charged once.', async () => {
  const limit = limitOf(newSubject(), { limit: 5 })
  const body = { id: 'one', lists: [[{ mode: 'take', limits: [limit] }]] }
  const first = await call('/call', limit.subject, body)
  expect(await call('/call', limit.subject, body)).toEqual(first)
  await call('/call', limit.subject, { ...body, id: 'two' })
  expect((await ask('peek', limit)).states[0]![0]!.remaining).toBe(3)
})

test('Expired rows stay until the alarm, and an object without state leaves nothing.', async () => {
  const short = limitOf(newSubject(), { windowMs: 500 })
  await ask('take', short)
  const [, alarmAt] = await call<[unknown[], number]>('/alarm', short.subject)
  expect(alarmAt).toBeGreaterThan(Date.now())
  await sleep(1_050)
  expect(await call('/alarm', short.subject)).toEqual([[], null])
  expect(await admitted(short, 1)).toBe(1)
  expect(await call<unknown[]>('/dump', short.subject)).toHaveLength(1)
})

test('An alarm that goes off early or late changes no count.', async () => {
  const subject = newSubject()
  const limit = limitOf(subject, { limit: 30 })
  const log = limitOf(subject, { tag: 'l', algorithm: 'sliding-log', limit: 25 })
  let count = 0
  for (let n = 0; n < 40; n++) {
    if (n % 7 === 3) await call('/alarm', subject)
    if (isAdmitted(await ask('take', limit, log))) count += 1
  }
  expect(count).toBe(25)
})

test('Concurrent calls for one subject admit exactly the limit.', async () => {
  const limit = limitOf(newSubject(), { limit: 37 })
  const lists = Array.from({ length: 64 }, (): StoreRequest[] => [
    { mode: 'take', limits: [limit] },
  ])
  const replies = await store.decideEach(lists, {})
  expect(replies.filter((reply) => isAdmitted(reply as StoreReply))).toHaveLength(37)
})

test('An idempotency key repeats the reply, also after a lost memory, and refuses another call.', async () => {
  const limit = limitOf(newSubject(), { limit: 5 })
  const list: StoreRequest[] = [{ mode: 'take', limits: [limit] }]
  const idempotency = { key: newSubject(), fingerprint: 'one', forMs: 60_000 }
  const first = await store.decide(list, { idempotency })
  await evict(limit.subject)
  expect(await store.decide(list, { idempotency })).toEqual({ ...first, replayed: true })
  expect((await ask('peek', limit)).states[0]![0]!.remaining).toBe(4)
  await expect(
    store.decide(list, { idempotency: { ...idempotency, fingerprint: 'two' } }),
  ).rejects.toMatchObject({ code: 'idempotency-conflict' })
})

test('An idempotency key is forgotten at its end.', async () => {
  const limit = limitOf(newSubject(), { limit: 5 })
  const list: StoreRequest[] = [{ mode: 'take', limits: [limit] }]
  const idempotency = { key: newSubject(), fingerprint: 'one', forMs: 1000 }
  const now = Date.now()
  await store.decide(list, { idempotency, now })
  const { replayed } = await store.decide(list, { idempotency, now: now + 999 })
  expect(replayed).toBe(true)
  const last = await store.decide(list, { idempotency, now: now + 1000 })
  expect(last.replayed).toBeUndefined()
})
