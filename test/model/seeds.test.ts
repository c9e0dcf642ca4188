/**
 * Repeats published runs of nine earlier limiters on this script. docs/explanation/algorithms.md lists the limiters; the
 * numbers in the titles are theirs.
 */
import { expect, test } from 'vitest'
import { decideEach } from '../../src/limiter/decide.ts'
import type { LimiterParts } from '../../src/limiter/question.ts'
import type { StoreState } from '../../src/store/store.ts'
import { createMatcher } from '../support/create-matcher.ts'
import { callOf, useServer } from '../support/server.ts'
import { newSubject } from '../support/subjects.ts'
import { toThrottleReply } from '../support/throttle.ts'
import type { ModelPolicy } from './model.ts'

const server = useServer()
const start = 1_789_000_000_000

type Terms = Pick<ModelPolicy, 'algorithm' | 'limit' | 'windowMs'> & Partial<ModelPolicy>

const policyOf = (terms: Terms): ModelPolicy => ({
  tag: 't',
  burst: 1,
  align: 'first-request',
  ...terms,
})

/** Creates a client of a limit. Each of its calls takes one unit. */
function caller(terms: Terms) {
  const subject = newSubject()
  const limits = [{ subject, terms: policyOf(terms), cost: 1 }]
  const call = async (now?: number): Promise<StoreState> =>
    (await server.decide([{ mode: 'take', limits }], now)).states[0]![0]!
  const calls = async (times: (number | undefined)[]) =>
    (await Promise.all(times.map(call))).filter(({ allowed }) => allowed).length
  return { subject, limits, record: `sluice:1:{${subject}}`, call, calls }
}

const at = (now: number | undefined, count: number) => Array<typeof now>(count).fill(now)
const tenASecond = { algorithm: 'fixed-window', limit: 10, windowMs: 1000 } as const

/** Designs 1, 2 and 4: compare the count by `>` before they increment it. */
async function checkThenCount(key: string): Promise<boolean> {
  if (Number(await server.send('GET', key)) > 10) return false
  await Promise.all([server.send('INCR', key), server.send('EXPIRE', key, '60')])
  return true
}

test('1: The published counter per second admits 11 of 20 calls, and a fixed window by the clock admits 10.', async () => {
  const key = `${newSubject()}:${start / 1000}`
  let published = 0
  for (let call = 0; call < 20; call++) published += Number(await checkThenCount(key))
  expect(published).toBe(11)

  const ours = caller({ ...tenASecond, align: 'clock' })
  expect(await ours.calls(at(start + 999, 20))).toBe(10)
  expect(await ours.calls(at(start + 1000, 20))).toBe(10)
})

test('2: INCR without its EXPIRE leaves a key without a TTL, and the record of a fixed window always has a TTL.', async () => {
  const key = newSubject()
  await server.send('INCR', key)
  expect(await server.send('PTTL', key)).toBe(-1)

  const ours = caller(tenASecond)
  expect(await ours.calls(at(start, 20))).toBe(10)
  expect(Number(await server.send('PTTL', ours.record))).toBeGreaterThan(0)
})

test('3: A fixed window opens with the first call, as in the published script of INCR and EXPIRE.', async () => {
  const ours = caller(tenASecond)
  expect(await ours.calls(at(start + 700, 3))).toBe(3)
  expect(await ours.calls(at(start + 1699, 20))).toBe(7)
  expect(await ours.calls(at(start + 1700, 20))).toBe(10)
})

test('4: The record of ten units needs at most 8 bytes more than that of one, while the published list grows.', async () => {
  const ours = caller(tenASecond)
  await ours.call(start)
  const size = () => server.send('MEMORY', 'USAGE', ours.record).then(Number)
  const one = await size()
  expect(await ours.calls(at(start, 19))).toBe(9)
  expect((await size()) - one).toBeLessThanOrEqual(8)
})

test('5: A sliding log of 10 per minute admits exactly 10 of 72 concurrent callers by the real clock.', async () => {
  const ours = caller({ algorithm: 'sliding-log', limit: 10, windowMs: 60_000 })
  const clients = await Promise.all(Array.from({ length: 72 }, () => server.connect()))
  const command = callOf([{ mode: 'take', limits: ours.limits }])
  const replies = await Promise.all(clients.map((client) => client.sendCommand(command)))
  const marks = replies.map((reply) => String(reply).split(' ')[1]![0])
  expect(marks.filter((mark) => mark === '+').length).toBe(10)
  expect(await server.send('ZCARD', `${ours.record}:log:t`)).toBe(10)
})

test('5: A sliding log of 10 per minute admits 10 calls, not 15, if the clocks of callers differ by half a minute.', async () => {
  const ours = caller({ algorithm: 'sliding-log', limit: 10, windowMs: 60_000 })
  const times = Array.from({ length: 72 }, (_, index) => start + (index % 2) * 30_000)
  expect(await ours.calls(times)).toBe(10)
})

test('6: A sliding log of 5 admits 5 of 20 concurrent calls, and the 15 refused calls store nothing.', async () => {
  const ours = caller({ algorithm: 'sliding-log', limit: 5, windowMs: 10_000 })
  expect(await ours.calls(at(undefined, 20))).toBe(5)
  expect(await server.send('ZCARD', `${ours.record}:log:t`)).toBe(5)
})

test('7: A full bucket of ten admits ten calls at once, and then one call every 100 ms.', async () => {
  const terms = { algorithm: 'token-bucket', limit: 600, windowMs: 60_000, burst: 10 } as const
  const ours = caller(terms)
  expect(await ours.calls(at(start, 10))).toBe(10)
  expect(await ours.call(start)).toMatchObject({ allowed: false, retryAfterMs: 100 })
  const tenSeconds = Array.from({ length: 1000 }, (_, index) => start + 10 * (index + 1))
  expect(await ours.calls(tenSeconds)).toBe(100)
})

test('7: A request without a matching policy is allowed with the reason no-policy, without Redis.', async () => {
  const describe = createMatcher({
    policies: [{ name: 'api', limit: 10, window: '1s', match: { path: '/api/*' } }],
  })
  const matched = await describe('https://example.com/other')
  const [outcome] = await decideEach([{ matched }], {} as LimiterParts)
  expect(outcome!.decision).toMatchObject({ allowed: true, reason: 'no-policy', limits: [] })
})

test('8: A bucket of two that refills one unit in two seconds reproduces the published funnel, called once per second.', async () => {
  const ours = caller({ algorithm: 'token-bucket', limit: 1, windowMs: 2000, burst: 2 })
  const pattern: boolean[] = []
  for (let second = 0; second < 10; second++) {
    pattern.push((await ours.call(start + second * 1000)).allowed)
  }
  const [yes, no] = [true, false]
  expect(pattern).toEqual([yes, yes, yes, no, yes, no, yes, no, yes, no])
})

test('9: A token bucket reproduces the reply of CL.THROTTLE key 15 30 60 1 on a new key.', async () => {
  const terms = { algorithm: 'token-bucket', limit: 30, windowMs: 60_000, burst: 16 } as const
  expect(toThrottleReply(await caller(terms).call(start), terms)).toEqual([0, 16, 15, -1, 2])
})
