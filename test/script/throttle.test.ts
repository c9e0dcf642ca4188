import { expect, test } from 'vitest'
import type { ModelPolicy } from '../model/model.ts'
import { useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'
import { type ThrottleReply, toThrottleReply } from '../support/throttle.ts'

const server = useServer()
const start = 1_789_000_000_000

/** Acts like `CL.THROTTLE key max_burst count period quantity`, at a given time after the start. */
function throttle(maxBurst: number, count: number, periodMs: number) {
  const policy: ModelPolicy = {
    tag: 't',
    algorithm: 'token-bucket',
    limit: count,
    windowMs: periodMs,
    burst: maxBurst + 1,
    align: 'first-request',
  }
  const subject = newSubject()
  return async (afterMs: number, quantity: number) => {
    const limits = [{ subject, terms: policy, cost: quantity }]
    const reply = await server.decide([{ mode: 'take', limits }], start + afterMs)
    const state = reply.states[0]![0]!
    return { state, reply: toThrottleReply(state, policy) }
  }
}

// The table published by redis-cell, with a burst of five and one unit per second. Times are in ms.
const published: [
  after: number,
  quantity: number,
  remaining: number,
  reset: number,
  retry: number | null,
][] = [
  [0, 6, 5, 0, null],
  [0, 1, 4, 1000, 0],
  [0, 1, 3, 2000, 0],
  [0, 1, 2, 3000, 0],
  [0, 1, 1, 4000, 0],
  [0, 1, 0, 5000, 0],
  [0, 1, 0, 5000, 1000],
  [3000, 1, 2, 3000, 0],
  [3100, 1, 1, 3900, 0],
  [4000, 1, 1, 4000, 0],
  [8000, 1, 4, 1000, 0],
  [9500, 1, 4, 1000, 0],
  [9500, 0, 4, 1000, 0],
  [9500, 2, 2, 3000, 0],
  [9500, 5, 2, 3000, 3000],
]

test('The script reproduces the sequence published by redis-cell to the millisecond.', async () => {
  const ask = throttle(4, 1, 1000)
  for (const [after, quantity, remaining, resetAfterMs, retryAfterMs] of published) {
    const { state } = await ask(after, quantity)
    expect(state, `${quantity} after ${after}`).toMatchObject({
      allowed: retryAfterMs === 0,
      remaining,
      resetAfterMs,
      retryAfterMs,
    })
  }
})

const views: [after: number, quantity: number, reply: ThrottleReply][] = [
  [0, 0, [0, 16, 16, -1, 0]],
  [0, 17, [1, 16, 16, -1, 0]],
  [0, 1, [0, 16, 15, -1, 2]],
  [0, 0, [0, 16, 15, -1, 2]],
  [1, 1, [0, 16, 14, -1, 4]],
  [1, 14, [0, 16, 0, -1, 32]],
  [1, 1, [1, 16, 0, 2, 32]],
  [1001, 1, [1, 16, 0, 1, 31]],
  [1999, 1, [1, 16, 0, 1, 31]],
  [2000, 1, [0, 16, 0, -1, 32]],
  [2000, 16, [1, 16, 0, 32, 32]],
  [2000, 17, [1, 16, 0, -1, 32]],
  [34_000, 16, [0, 16, 0, -1, 32]],
]

test('The script agrees with CL.THROTTLE key 15 30 60, even for a quantity of 0 or above the capacity.', async () => {
  const ask = throttle(15, 30, 60_000)
  for (const [after, quantity, reply] of views) {
    expect((await ask(after, quantity)).reply, `${quantity} after ${after}`).toEqual(reply)
  }
})
