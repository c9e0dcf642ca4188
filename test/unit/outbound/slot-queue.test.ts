import { expect, test } from 'vitest'
import type { Limit } from '../../../src/core/connection/store.ts'
import { SlotQueues } from '../../../src/outbound/slot-queue.ts'
import { cancellable, inVirtualTime } from '../../support/virtual-time.ts'

const limit = { subject: 'one', terms: { tag: 'open' }, cost: 1 } as Limit

test('A call that the runtime has cancelled lets the next one ask for a slot within about two seconds, and not only at the end of its wait.', () =>
  inVirtualTime(async (time) => {
    for (const cancelledAfter of [0, 70, 700]) {
      const queues = new SlotQueues()
      const until = time.now() + 60_000
      const asked: [number, number][] = []
      const calls = [0, 1, 2].map((index) =>
        cancellable(async () => {
          const queued = queues.join(limit, until, undefined)
          for (;;) {
            await queued.next()
            asked.push([index, time.now()])
          }
        }),
      )
      await time.pass(cancelledAfter)
      const cancelledAt = time.now()
      for (const { cancel } of calls.slice(0, 2)) cancel()
      await time.pass(10_000)
      const [first] = asked.filter(([index]) => index === 2)
      expect(first?.[1] ?? Infinity).toBeLessThanOrEqual(cancelledAt + 2_100)
      expect(queues.waiting(limit)).toBe(1)
      for (const { cancel } of calls) cancel()
    }
  }))

test('While the first call lives, the others do not ask, also if an answer takes long.', () =>
  inVirtualTime(async (time) => {
    const queues = new SlotQueues()
    const until = time.now() + 60_000
    const asked: number[] = []
    for (const index of [0, 1]) {
      const queued = queues.join(limit, until, undefined)
      void (async () => {
        while (time.now() < until) {
          await queued.next()
          asked.push(index)
          await time.sleep(5_000)
        }
      })()
    }
    await time.pass(50_000)
    expect(new Set(asked)).toEqual(new Set([0]))
  }))

test('After a release the first call asks at once, and no other one.', () =>
  inVirtualTime(async (time) => {
    const queues = new SlotQueues()
    const until = time.now() + 60_000
    const asked: [number, number][] = []
    const calls = [0, 1].map((index) =>
      cancellable(async () => {
        const queued = queues.join(limit, until, undefined)
        for (;;) {
          await queued.next()
          asked.push([index, time.now()])
        }
      }),
    )
    await time.pass(3_000) // its pauses are half a second now
    asked.length = 0
    const releasedAt = time.now()
    queues.wake(limit)
    await time.pass(1)
    expect(asked).toEqual([[0, releasedAt]])
    for (const { cancel } of calls) cancel()
  }))
