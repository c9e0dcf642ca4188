/**
 * The nine published limiters that this project grew from (docs/explanation/algorithms.md). Each test repeats a published run on
 * this script.
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

/** One caller's client of a limit: each call takes a unit. */
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

/** Designs 1, 2 and 4: the count is compared with `>` before it is raised. */
async function checkThenCount(key: string): Promise<boolean> {
  if (Number(await server.send('GET', key)) > 10) return false
  await Promise.all([server.send('INCR', key), server.send('EXPIRE', key, '60')])
  return true
}

test('1: the counter of the second lets 11 pass, ours by the clock 10', async () => {
  const key = `${newSubject()}:${start / 1000}`
  let published = 0
  for (let call = 0; call < 20; call++) published += Number(await checkThenCount(key))
  expect(published).toBe(11)

  const ours = caller({ ...tenASecond, align: 'clock' })
  expect(await ours.calls(at(start + 999, 20))).toBe(10)
  expect(await ours.calls(at(start + 1000, 20))).toBe(10)
})

test('2: INCR then EXPIRE leaves a key for ever if the client dies between, ours never', async () => {
  const key = newSubject()
  await server.send('INCR', key)
  expect(await server.send('PTTL', key)).toBe(-1)

  const ours = caller(tenASecond)
  expect(await ours.calls(at(start, 20))).toBe(10)
  expect(Number(await server.send('PTTL', ours.record))).toBeGreaterThan(0)
})

test('3: as in the script of INCR and EXPIRE the window opens with the first call', async () => {
  const ours = caller(tenASecond)
  expect(await ours.calls(at(start + 700, 3))).toBe(3)
  expect(await ours.calls(at(start + 1699, 20))).toBe(7)
  expect(await ours.calls(at(start + 1700, 20))).toBe(10)
})

test('4: where a list grows with every call, ours holds ten in the room of one', async () => {
  const ours = caller(tenASecond)
  await ours.call(start)
  const size = () => server.send('MEMORY', 'USAGE', ours.record).then(Number)
  const one = await size()
  expect(await ours.calls(at(start, 19))).toBe(9)
  expect((await size()) - one).toBeLessThanOrEqual(8)
})

test('5: of 72 callers at the same time, by the real clock, exactly 10 a minute enter', async () => {
  const ours = caller({ algorithm: 'sliding-log', limit: 10, windowMs: 60_000 })
  const clients = await Promise.all(Array.from({ length: 72 }, () => server.connect()))
  const command = callOf([{ mode: 'take', limits: ours.limits }])
  const replies = await Promise.all(clients.map((client) => client.sendCommand(command)))
  const allowed = replies.map((reply) => (reply as unknown as number[])[1])
  expect(allowed.filter((one) => one === 1).length).toBe(10)
  expect(await server.send('ZCARD', `${ours.record}:log:t`)).toBe(10)
})

test('5: callers whose clocks differ by half a minute enter ten times, not fifteen', async () => {
  const ours = caller({ algorithm: 'sliding-log', limit: 10, windowMs: 60_000 })
  const times = Array.from({ length: 72 }, (_, index) => start + (index % 2) * 30_000)
  expect(await ours.calls(times)).toBe(10)
})

test('6: of 20 calls at once on 5 in ten seconds 5 pass, and 15 leave nothing behind', async () => {
  const ours = caller({ algorithm: 'sliding-log', limit: 5, windowMs: 10_000 })
  expect(await ours.calls(at(undefined, 20))).toBe(5)
  expect(await server.send('ZCARD', `${ours.record}:log:t`)).toBe(5)
})

test('7: a fresh bucket of ten lets ten pass at once, then one every 100 ms', async () => {
  const terms = { algorithm: 'token-bucket', limit: 600, windowMs: 60_000, burst: 10 } as const
  const ours = caller(terms)
  expect(await ours.calls(at(start, 10))).toBe(10)
  expect(await ours.call(start)).toMatchObject({ allowed: false, retryAfterMs: 100 })
  const tenSeconds = Array.from({ length: 1000 }, (_, index) => start + 10 * (index + 1))
  expect(await ours.calls(tenSeconds)).toBe(100)
})

test('7: a request without a policy is an answer of its own, without Redis', async () => {
  const describe = createMatcher({
    policies: [{ name: 'api', limit: 10, window: '1s', match: { path: '/api/*' } }],
  })
  const matched = await describe('https://example.com/other')
  const [outcome] = await decideEach([{ matched }], {} as LimiterParts)
  expect(outcome!.decision).toMatchObject({ allowed: true, reason: 'no-policy', limits: [] })
})

test('8: the funnel of two that leaks one in two seconds, called once a second', async () => {
  const ours = caller({ algorithm: 'token-bucket', limit: 1, windowMs: 2000, burst: 2 })
  const pattern: boolean[] = []
  for (let second = 0; second < 10; second++) {
    pattern.push((await ours.call(start + second * 1000)).allowed)
  }
  const [yes, no] = [true, false]
  expect(pattern).toEqual([yes, yes, yes, no, yes, no, yes, no, yes, no])
})

test('9: CL.THROTTLE key 15 30 60 1 on a fresh key', async () => {
  const terms = { algorithm: 'token-bucket', limit: 30, windowMs: 60_000, burst: 16 } as const
  expect(toThrottleReply(await caller(terms).call(start), terms)).toEqual([0, 16, 15, -1, 2])
})
