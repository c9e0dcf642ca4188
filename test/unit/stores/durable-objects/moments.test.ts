/** One fault at each moment of a schedule: an object that ends, an error of its storage, an alarm that is late. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type {
  Limit,
  Store,
  StoreReply,
  StoreRequest,
  Terms,
} from '../../../../src/core/connection/store.ts'
import { STEP } from '../../../../src/stores/durable-objects/ahead.ts'
import {
  createObjectStore,
  spreadBySubject,
} from '../../../../src/stores/durable-objects/objects.ts'
import { SluiceSubject } from '../../../../src/stores/durable-objects/subject.ts'
import { isLong } from '../../../support/long.ts'
import { Crash, type Moment, memoryObjects } from '../../../support/memory-objects.ts'

const start = 1_789_000_000_000
const day = 86_400_000

beforeEach(() => void vi.useFakeTimers({ now: start }))
afterEach(() => vi.useRealTimers())

const limitOf = (
  algorithm: Terms['algorithm'],
  limit: number,
  { subject = 'a', windowMs = day } = {},
): Limit => ({
  subject,
  terms: {
    tag: 't',
    algorithm,
    limit,
    windowMs,
    burst: limit,
    align: 'first-request',
    localShare: 1,
  },
  cost: 1,
})

let slots = 0
/** Each request for slots has an id of its own. */
const asked = (limit: Limit): Limit => ({ ...limit, slot: `${++slots}` })
const isAdmitted = ({ states }: StoreReply) => states[0]!.every(({ allowed }) => allowed)

/** What happens at one moment of a run. */
type Fault = 'the object ends' | 'the storage fails'
const faults: Fault[] = ['the object ends', 'the storage fails']
/** The moments at which the storage can throw. */
const failing: Moment[] = [
  'before get',
  'before put',
  'before delete',
  'before list',
  'before transaction',
  'before deleteAll',
]

/** The objects of a run, which meets its fault at moment number `at`. */
function objectsWith(fault: Fault, at: number) {
  let met = 0
  const memory = memoryObjects(SluiceSubject, (moment) => {
    if (fault === 'the storage fails' && !failing.includes(moment)) return
    if (met++ !== at) return
    throw fault === 'the object ends' ? new Crash() : new Error('SQLITE_FULL')
  })
  const objects = createObjectStore({
    objects: memory.objects,
    binding: 'SLUICE_SUBJECT',
    batching: false,
  })
  return { memory, store: spreadBySubject(objects, () => {}), met: () => met }
}

/** Repeats a run with its fault at each of its moments, or at each third one. */
async function atEachMoment(run: (fault: Fault, at: number) => Promise<{ met: number }>) {
  for (const fault of faults) {
    const { met } = await run(fault, -1)
    expect(met).toBeGreaterThan(10)
    for (let at = 0; at < met; at += isLong ? 1 : 3) {
      vi.clearAllTimers()
      vi.setSystemTime(start)
      await run(fault, at)
    }
  }
}

/** A timer that meets a fault has no caller. */
const wait = (ms: number) =>
  vi.advanceTimersByTimeAsync(ms).then(
    () => {},
    () => {},
  )

/** Counts the units of one limit that a store gives and takes back. */
function counter(store: Store, limit: Limit) {
  const taken: { limit: Limit; decidedAt: number }[] = []
  const count = { admitted: 0, refundsSent: 0, refundsDone: 0, failed: 0 }
  async function take(): Promise<boolean> {
    const own = asked(limit)
    try {
      const reply = await store.decide([{ mode: 'take', limits: [own] }])
      if (!isAdmitted(reply)) return false
      count.admitted += 1
      taken.push({ limit: own, decidedAt: reply.decidedAt })
    } catch {
      count.failed += 1
    }
    return true
  }
  async function refund() {
    const last = taken.pop()
    if (!last) return
    count.refundsSent += 1
    const { limit: own, decidedAt } = last
    await store.decide([{ mode: 'refund', limits: [own], decidedAt }]).then(
      () => {
        count.refundsDone += 1
      },
      () => {},
    )
  }
  return { count, take, refund }
}

const LIMIT = 18

describe.each([
  ['fixed-window', STEP - 1],
  ['sliding-window', STEP - 1],
  ['token-bucket', STEP],
  ['sliding-log', 0],
  ['concurrency', 0],
] as const)('%s', (algorithm, bound) => {
  test('A fault at any moment never admits too much, and at most the stated bound and its own request too little.', async () => {
    await atEachMoment(async (fault, at) => {
      const { memory, store, met } = objectsWith(fault, at)
      const { count, take, refund } = counter(store, limitOf(algorithm, LIMIT))
      for (let n = 0; n < 4; n++) await take()
      await wait(600) // the exact count is written
      for (let n = 0; n < 3; n++) await take()
      await refund()
      await take()
      await memory.alarm('a').catch(() => {})
      await take()
      await refund()
      await refund()
      await wait(300)
      await take()
      await wait(600)
      for (let n = 0; n < 2 * LIMIT && (await take()); n++) if (n % 8 === 7) await refund()
      while (await take());
      const story = `${fault} at moment ${at}: ${JSON.stringify(count)}`
      const { admitted, refundsSent, refundsDone } = count
      expect(admitted - refundsSent, story).toBeLessThanOrEqual(LIMIT)
      expect(admitted - refundsDone, story).toBeGreaterThanOrEqual(LIMIT - bound - 1)
      if (at < 0) expect(admitted - refundsDone).toBe(LIMIT)
      return { met: met() }
    })
  })

  test('An alarm that is late deletes nothing of the window that has begun since.', async () => {
    const windowMs = 60_000
    for (const lateMs of [0, 1, windowMs, 3_600_000, 40 * day]) {
      vi.clearAllTimers()
      vi.setSystemTime(start)
      const { memory, store } = objectsWith('the object ends', -1)
      const { count, take } = counter(store, limitOf(algorithm, LIMIT, { windowMs }))
      for (let n = 0; n < 5; n++) await take()
      vi.setSystemTime(memory.at('a').alarmAt! + lateMs)
      for (let n = 0; n < 3; n++) await take()
      await memory.alarm('a')
      memory.restart('a')
      while (await take());
      expect(count.admitted).toBe(5 + LIMIT)
    }
  })
})

test('A fault of one of two objects at any moment exceeds neither limit, and costs at most the stated bound and its own request.', async () => {
  const most = { a: 24, b: 14 }
  const [a, b] = [
    limitOf('fixed-window', most.a),
    limitOf('fixed-window', most.b, { subject: 'b' }),
  ]
  await atEachMoment(async (fault, at) => {
    const { store, met } = objectsWith(fault, at)
    const admitted = { a: 0, b: 0 }
    let failed = 0
    async function take(...limits: Limit[]): Promise<boolean> {
      const work: Promise<unknown>[] = []
      const options = { waitUntil: (one: Promise<unknown>) => void work.push(one) }
      const requests: StoreRequest[] = [{ mode: 'take', limits }]
      let isFull = false
      try {
        if (isAdmitted(await store.decide(requests, options))) {
          for (const { subject } of limits) admitted[subject as 'a' | 'b'] += 1
        } else isFull = true
      } catch {
        failed += 1
      }
      // A refund adds its work when it begins.
      for (let done = -1; done < work.length; ) {
        done = work.length
        await Promise.allSettled(work)
      }
      return !isFull
    }
    for (let n = 0; n < most.b + 4; n++) await take(a, b)
    await wait(600)
    while (await take(a));
    while (await take(b));
    const story = `${fault} at moment ${at}: ${JSON.stringify({ admitted, failed })}`
    for (const name of ['a', 'b'] as const) {
      expect(admitted[name], story).toBeLessThanOrEqual(most[name])
      expect(admitted[name], story).toBeGreaterThanOrEqual(most[name] - (STEP - 1) - 1)
    }
    if (at < 0) expect(admitted).toEqual(most)
    return { met: met() }
  })
})
