import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WaitQueue } from '../../../../src/core/base/wait-queue.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('Items wait in order until each is answered.', async () => {
  const queue = new WaitQueue<{ name: string }, number>()
  const [first, second] = [queue.join({ name: 'a' }, 100), queue.join({ name: 'b' }, 100)]
  expect([...queue].map(({ name }) => name)).toEqual(['a', 'b'])
  second.answer(2)
  first.answer(1)
  expect(await Promise.all([first.answered, second.answered])).toEqual([1, 2])
})

test('An item without an answer in time leaves the queue, and a later answer has no effect.', async () => {
  const queue = new WaitQueue<object, number>()
  const late = queue.join({}, 100)
  const patient = queue.join({}, 101)
  vi.advanceTimersByTime(100)
  late.answer(1)
  expect(await late.answered).toBeUndefined()
  expect([...queue]).toEqual([patient])
})

test('Only the first answer counts, and it stops the timer.', async () => {
  const waiter = new WaitQueue<object, number>().join({}, 100)
  waiter.answer(1)
  waiter.answer(2)
  expect(await waiter.answered).toBe(1)
  expect(vi.getTimerCount()).toBe(0)
})
