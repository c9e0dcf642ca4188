import { setTimeout as sleep } from 'node:timers/promises'
import { watchStall } from 'sluice-bench'
import type { FaultText } from 'sluice-fault-proxy'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { testNoLeaks } from '../support/no-leaks.ts'

const DEADLINE = 400
let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
})
afterAll(() => stack.stop())

/** A Worker whose script is there, and how many calls arrived before the fault that now begins. */
async function broken(fault: FaultText, batching = false) {
  await stack.faults.set(null)
  const worker = await stack.renew({
    deadline: DEADLINE,
    batching,
    policies: [{ name: 'a', limit: 100_000, window: '1d', match: { path: '/x' } }],
  })
  await vi.waitFor(async () => expect(await decided()).toBe(true), { timeout: 10_000 })
  const arrived = () => {
    const { evalsha = 0, eval: whole = 0 } = stack.faults.counts().arrived
    return evalsha + whole
  }
  const before = arrived()
  await stack.faults.set(fault)
  return { worker, asked: () => arrived() - before }
}
const decided = async () => (await stack.get('/x')).headers.has('ratelimit')
const many = (count: number) => Promise.all(Array.from({ length: count }, () => stack.get('/x')))

test('five failures open the circuit: from then on answers come at once, and one request a second asks', async () => {
  const { worker, asked } = await broken('hang')
  const stall = watchStall(`${worker.url}/free`)
  const start = performance.now()
  const elapsed = () => performance.now() - start
  await many(5)
  expect(asked()).toBe(5)

  const times: number[] = []
  while (elapsed() < 3000) {
    const answers = await Promise.all([...Array(4).keys()].map(() => stack.get('/x')))
    expect(answers.map(({ status, passed }) => [status, passed])).toEqual(
      Array(4).fill([200, true]),
    )
    times.push(...answers.map(({ ms }) => ms))
    // The one that asks fails after the deadline, and keeps the circuit open for another second.
    expect(asked() - 5).toBeLessThanOrEqual(elapsed() / 1000)
    await sleep(10)
  }
  expect(asked()).toBeGreaterThan(5)
  const waited = times.filter((ms) => ms > DEADLINE - 20)
  const stoodStill = await stall.between(start, performance.now())
  expect(waited.length).toBeLessThanOrEqual(asked() - 5 + stoodStill / (DEADLINE - 20))
  expect((await stack.logged('breaker-opened')).map(({ code }) => code)).toEqual(['timeout'])
  await stall.stop()
})

test.each<FaultText>(['hang', 'refuse', 'reset-body', 'html', 'status=503', 'redis-error'])(
  'it closes by itself within two seconds after %s',
  async (fault) => {
    const { worker } = await broken(fault)
    const stall = watchStall(`${worker.url}/free`)
    await many(6)
    expect(await stack.logged('breaker-opened')).toHaveLength(1)
    await stack.faults.set(null)
    const start = performance.now()
    while (!(await decided())) expect(performance.now() - start).toBeLessThan(10_000)
    const end = performance.now()
    expect(end - start - (await stall.between(start, end))).toBeLessThan(2000)
    await stall.stop()
    expect(await stack.logged('breaker-closed')).toHaveLength(1)
  },
)

test('a call that several requests share is one failure', async () => {
  const { worker, asked } = await broken('hang', true)
  let requests = 0
  for (let calls = 0; calls < 5; calls = asked()) {
    expect(worker.logs.join('\n')).not.toContain('breaker-opened')
    await many(4)
    requests += 4
  }
  expect(await stack.logged('breaker-opened')).toHaveLength(1)
  expect(requests).toBeGreaterThan(asked())
  await many(20)
  expect(asked()).toBeLessThan(8)
})

test.each<FaultText>(['over-quota', 'unauthorized'])(
  '%s opens it at once, and two seconds later it is still open',
  async (fault) => {
    const { asked } = await broken(fault)
    await stack.get('/x')
    await many(10)
    await stack.faults.set(null)
    await sleep(2100)
    await many(10)
    expect(asked()).toBe(1)
    expect(await decided()).toBe(false)
  },
)

testNoLeaks(() => stack)
