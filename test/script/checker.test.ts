import { expect, test } from 'vitest'
import { Model, type ModelRequest } from '../model/model.ts'
import { rowOf } from '../support/ask.ts'
import { type Call, unexplained } from '../support/checker.ts'

/** A valid history of six calls, in overlapping pairs. */
function validHistory(): Call[] {
  const model = new Model()
  const requests: ModelRequest[] = [
    { mode: 'take', limits: [rowOf({ limit: 3, windowMs: 60_000 })] },
  ]
  return Array.from({ length: 6 }, (_, index) => {
    const pair = Math.floor(index / 2)
    return {
      sent: pair * 10,
      answered: pair * 10 + 9,
      requests,
      reply: model.decide(requests, 1_000_000 + pair * 10 + 5),
    }
  })
}
const row = (call: Call) => call.reply.states[0]![0]!

test('The checker explains a valid history, whatever the order of its calls and of concurrent replies.', () => {
  expect(unexplained(validHistory())).toBeUndefined()
  const history = validHistory().reverse()
  ;[history[0]!.reply, history[1]!.reply] = [history[1]!.reply, history[0]!.reply]
  expect(unexplained(history)).toBeUndefined()
})

test.each<[string, (history: Call[]) => void]>([
  [
    'a request admitted beyond the limit',
    (h) => Object.assign(row(h[3]!), { allowed: true, remaining: 0, retryAfterMs: 0 }),
  ],
  [
    'a request refused although it had room',
    (h) => Object.assign(row(h[2]!), { allowed: false, retryAfterMs: 59_990 }),
  ],
  ['two requests that took the same unit', (h) => Object.assign(row(h[1]!), { remaining: 2 })],
  ['a lost charge', (h) => void h.splice(0, 1)],
  [
    'a retry_after that is a millisecond too short',
    (h) => Object.assign(row(h[4]!), { retryAfterMs: row(h[4]!).retryAfterMs! - 1 }),
  ],
  [
    'a call that was answered before an earlier decision was requested',
    (h) => {
      // By the store, the second call came first. But the first call was answered before the second was sent.
      Object.assign(h[0]!, { answered: 1 })
      Object.assign(h[1]!, { sent: 2 })
      ;[h[0]!.reply, h[1]!.reply] = [h[1]!.reply, h[0]!.reply]
    },
  ],
  [
    'a clock that moved back',
    (h) => Object.assign(h[4]!.reply, { decidedAt: h[4]!.reply.decidedAt - 7 }),
  ],
])('The checker rejects a history with %s.', (_, plant) => {
  const history = structuredClone(validHistory())
  plant(history)
  expect(unexplained(history)).toBeDefined()
})

test('The checker returns the longest order of calls that it can explain.', () => {
  const history = validHistory()
  row(history[4]!).remaining = 1
  expect(unexplained(history)).toHaveLength(5)
})
