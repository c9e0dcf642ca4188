import { expect, test } from 'vitest'
import { createLocalStore } from '../../../../src/core/fallback/local.ts'
import { event, limitWith, type Streamed, streamed } from '../../../support/metered.ts'
import { failing, fallbackOver, lateStore } from '../../../support/with-fallback.ts'

const SSE = { 'content-type': 'text/event-stream' }
const CUT = { usage: 'usage.total_tokens', otherwise: 10, max: 4000, cut: true }

/** A store in memory, in which a budget of `limit` units is charged with the first reservation. */
async function budget(limit: number, cost: object = CUT, policy: object = {}) {
  const store = createLocalStore(() => 0)
  const one = limitWith(cost, { algorithm: 'fixed-window', limit, ...policy })
  await store.decide([{ mode: 'take', limits: [one] }])
  return { store, limit: one }
}

/** Writes events until the stream ends for the client. Returns what the client gets. */
async function run(one: Streamed, count: number, last = event('[DONE]')) {
  for (let index = 0; index < count; index += 1) one.write(event({ index }))
  one.write(last)
  if (!one.isCancelled()) one.close()
  return one.response.text()
}
const eventsIn = (text: string) => text.split('"index"').length - 1

test('A stream within its reservation makes no further call.', async () => {
  const { limit } = await budget(100)
  const one = streamed(limit, SSE)!
  expect(eventsIn(await run(one, 9))).toBe(9)
  expect(await one.kept).toEqual([10])
})

test('A stream takes chunks while it runs, and ends with an event when the budget is gone.', async () => {
  const { store, limit } = await budget(45)
  const one = streamed(limit, SSE, { store })!
  const text = await run(one, 1000)
  const [, final] = /\n\nevent: error\ndata: (.*)\n\n$/.exec(text)!
  expect(JSON.parse(final!)).toEqual({
    type: 'error',
    error: {
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      message: 'The quota "tokens" is used up.',
      policy: 'tokens',
      retryAfterMs: 3_600_000,
    },
  })
  // 40 reserved units, and at most one chunk more.
  expect(eventsIn(text)).toBeGreaterThanOrEqual(40)
  expect(eventsIn(text)).toBeLessThanOrEqual(50)
  expect(one.isCancelled()).toBe(true)
  const kept = await one.kept
  expect(kept.slice(0, 3)).toEqual([10, 10, 10])
  expect(kept.reduce((sum, units) => sum + units, 0)).toBe(eventsIn(text))
})

test('The usage at the end of a stream refunds chunks that it has not used.', async () => {
  const { store, limit } = await budget(100)
  const one = streamed(limit, SSE, { store })!
  await run(one, 35, event({ usage: { total_tokens: 22 } }))
  expect(await one.kept).toEqual([10, 10, 2, 0])
})

test('The usage at the end of a stream is charged above its chunks.', async () => {
  const { store, limit } = await budget(100)
  const one = streamed(limit, SSE, { store })!
  await run(one, 5, event({ usage: { total_tokens: 60 } }))
  const kept = await one.kept
  expect(kept.reduce((sum, units) => sum + units, 0)).toBe(60)
})

test('A complete response is not cut, even if its usage is above the budget.', async () => {
  const { store, limit } = await budget(10)
  const one = streamed(limit, SSE, { store })!
  one.write(event({ index: 0 }))
  one.write(event({ usage: { total_tokens: 60 } }))
  one.write(event('[DONE]'))
  one.close()
  expect(await one.response.text()).toMatch(/data: \[DONE\]\n\n$/)
  expect(await one.kept).toEqual([60])
})

test('A stream whose events all have usage ends when the budget is gone.', async () => {
  const { store, limit } = await budget(40)
  const one = streamed(limit, SSE, { store })!
  for (let index = 0; index < 100; index += 1) one.write(event({ usage: { total_tokens: index } }))
  expect(await one.response.text()).toMatch(/event: error\ndata: .*\n\n$/)
  const spent = (await one.kept).reduce((sum, units) => sum + units, 0)
  expect(spent).toBeGreaterThanOrEqual(40)
  expect(spent).toBeLessThanOrEqual(50)
})

test('A stream ends at max.', async () => {
  const { store, limit } = await budget(1000, { ...CUT, max: 25 })
  const one = streamed(limit, SSE, { store })!
  const text = await run(one, 100)
  expect(text).toContain('The response has reached its maximum of 25 units of \\"tokens\\".')
  expect(eventsIn(text)).toBe(25)
  expect(await one.kept).toEqual([10, 10, 5])
})

test('A part of an event is never followed by the last event.', async () => {
  const { store, limit } = await budget(10)
  const one = streamed(limit, SSE, { store })!
  const text = event({ index: 0 }).repeat(30)
  for (const at of Array.from({ length: text.length / 7 }, (_, index) => index * 7)) {
    one.write(text.slice(at, at + 7))
  }
  const received = await one.response.text()
  expect(received).toMatch(/^(data: \{"index":0\}\n\n){10,20}event: error\ndata: .*\n\n$/)
})

test.each([
  ['is compressed', { 'content-encoding': 'gzip' }],
  ['has a known length', { 'content-length': '100000' }],
])('A stream that %s breaks off when the budget is gone.', async (_, headers) => {
  const { store, limit } = await budget(10)
  const one = streamed(limit, { ...SSE, ...headers }, { store })!
  await expect(run(one, 100)).rejects.toThrow('the quota is used up')
  expect(one.isCancelled()).toBe(true)
})

test('A shadow policy never ends a stream.', async () => {
  const { store, limit } = await budget(10, CUT, { mode: 'shadow' })
  const one = streamed(limit, SSE, { store })!
  expect(eventsIn(await run(one, 100))).toBe(100)
  expect(await one.kept).toEqual([100])
})

/** A store without an answer, as a limiter has it. */
const unreachable = () => fallbackOver(failing())

test('A stream runs on if the store fails, and the error is reported.', async () => {
  const { limit } = await budget(10, CUT, { onStoreError: 'allow' })
  const { store, errors } = unreachable()
  const one = streamed(limit, SSE, { store })!
  expect(eventsIn(await run(one, 35))).toBe(35)
  expect((await one.kept).reduce((sum, units) => sum + units, 0)).toBe(35)
  expect(new Set(errors)).toEqual(new Set(['unreachable']))
})

test('A stream takes its chunks from the local count if the store fails.', async () => {
  const { limit } = await budget(20)
  const one = streamed(limit, SSE, unreachable())!
  const text = await run(one, 100)
  expect(eventsIn(text)).toBeGreaterThanOrEqual(30) // 10 from the store, and 20 from the local count
  expect(text).toContain('event: error')
})

test("A stream ends if the store fails and the policy has onStoreError: 'deny'.", async () => {
  const { limit } = await budget(10, CUT, { onStoreError: 'deny' })
  const one = streamed(limit, SSE, unreachable())!
  expect(await run(one, 35)).toContain('event: error')
})

test('A chunk that the store charges after the deadline is settled like any other.', async () => {
  const { limit } = await budget(100)
  const late = lateStore({
    ...failing(),
    decide: async () => ({ decidedAt: 7, states: [[{ allowed: true } as never]] }),
  })
  const one = streamed(limit, SSE, fallbackOver(late.store))!
  await run(one, 11)
  late.release()
  expect(await one.kept).toEqual([10, 1])
  const [, charge] = [...one.charges.values()]
  expect(await charge!.fallback!.late).toBe(7)
})
