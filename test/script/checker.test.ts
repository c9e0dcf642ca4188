import { expect, test } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import { Model, type ModelRequest } from '../model/model.ts'
import { type Call, unexplained } from '../support/checker.ts'

const [policy] = parseConfig({
  policies: [{ name: 'a', limit: 3, window: '1h', algorithm: 'fixed-window' }],
}).policies
const take = (subject = 'x'): ModelRequest[] => [
  { mode: 'take', limits: [{ subject, terms: policy!, cost: 1 }] },
]

/** A true history of six calls that overlap two by two. */
function truth(): Call[] {
  const model = new Model()
  return Array.from({ length: 6 }, (_, index) => {
    const pair = Math.floor(index / 2)
    const requests = take()
    return {
      sent: pair * 10,
      answered: pair * 10 + 9,
      requests,
      reply: model.decide(requests, 1_000_000 + pair * 10 + 5),
    }
  })
}
const row = (call: Call) => call.reply.states[0]![0]!

test('the checker explains a true history in any order of its calls', () => {
  expect(unexplained(truth())).toBeUndefined()
  expect(unexplained(truth().reverse())).toBeUndefined()
})

test('the checker explains calls whose answers overtook each other', () => {
  const history = truth()
  ;[history[0]!.reply, history[1]!.reply] = [history[1]!.reply, history[0]!.reply]
  expect(unexplained(history)).toBeUndefined()
})

test.each<[string, (history: Call[]) => void]>([
  [
    'one more admitted than there is room for',
    (h) => Object.assign(row(h[3]!), { allowed: true, remaining: 0, retryAfterMs: 0 }),
  ],
  [
    'one refused that had room',
    (h) => Object.assign(row(h[2]!), { allowed: false, retryAfterMs: 3_599_990 }),
  ],
  ['two that saw the same unit', (h) => Object.assign(row(h[1]!), { remaining: 2 })],
  ['a charge that was lost', (h) => void h.splice(0, 1)],
  ['a refusal that was charged', (h) => Object.assign(row(h[5]!), { remaining: -1 })],
  [
    'a wait that is a millisecond short',
    (h) => Object.assign(row(h[4]!), { retryAfterMs: row(h[4]!).retryAfterMs! - 1 }),
  ],
  [
    'a wait that is a millisecond long',
    (h) => Object.assign(row(h[4]!), { resetAfterMs: row(h[4]!).resetAfterMs + 1 }),
  ],
  [
    'a call answered before one that saw less was sent',
    (h) => {
      // By the store's times the second came first, but the first was answered before the second was sent.
      Object.assign(h[0]!, { answered: 1 })
      Object.assign(h[1]!, { sent: 2 })
      ;[h[0]!.reply, h[1]!.reply] = [h[1]!.reply, h[0]!.reply]
    },
  ],
  [
    'a clock that ran back',
    (h) => Object.assign(h[4]!.reply, { decidedAt: h[4]!.reply.decidedAt - 7 }),
  ],
])('the checker rejects %s', (_, plant) => {
  const history = structuredClone(truth())
  plant(history)
  expect(unexplained(history)).toBeDefined()
})

test('the checker reports how far the longest explanation got', () => {
  const history = truth()
  row(history[4]!).remaining = 1
  expect(unexplained(history)).toHaveLength(5)
})
