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

/** Starts a Worker, loads the script, and starts the fault. `calls` counts the calls since then. */
async function startBroken(fault: FaultText, batching = false) {
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
  return { worker, calls: () => arrived() - before }
}
const decided = async () => (await stack.get('/x')).headers.has('ratelimit')
const many = (count: number) => Promise.all(Array.from({ length: count }, () => stack.get('/x')))

test('Five failures open the circuit: then answers come at once, and one request a second calls the store.', async () => {
  const { worker, calls } = await startBroken('hang')
  const stall = watchStall(`${worker.url}/free`)
  let start = performance.now()
  const elapsed = () => performance.now() - start
  await many(5)
  expect(calls()).toBe(5)
  // In a busy isolate a timer fires late, and its failure does not count.
  await vi.waitFor(
    async () => {
      if (!worker.logs.join().includes('breaker-opened')) {
        start = performance.now()
        await stack.get('/x')
      }
      expect(await stack.logged('breaker-opened')).toHaveLength(1)
    },
    { timeout: 20_000 },
  )
  const failed = calls()

  const times: number[] = []
  while (elapsed() < 3000) {
    const answers = await Promise.all([...Array(4).keys()].map(() => stack.get('/x')))
    expect(answers.map(({ status, passed }) => [status, passed])).toEqual(
      Array(4).fill([200, true]),
    )
    times.push(...answers.map(({ ms }) => ms))
    // The trial call fails after the deadline, and keeps the circuit open for another second.
    expect(calls() - failed).toBeLessThanOrEqual(elapsed() / 1000)
    await sleep(10)
  }
  expect(calls()).toBeGreaterThan(failed)
  const waited = times.filter((ms) => ms > DEADLINE - 20)
  const stalledMs = await stall.between(start, performance.now())
  expect(waited.length).toBeLessThanOrEqual(calls() - failed + stalledMs / (DEADLINE - 20))
  expect((await stack.logged('breaker-opened')).map(({ code }) => code)).toEqual(['timeout'])
  await stall.stop()
})

test.each<FaultText>(['hang', 'refuse', 'reset-body', 'html', 'status=503', 'redis-error'])(
  'The circuit closes by itself within two seconds after the fault %s ends.',
  async (fault) => {
    const { worker } = await startBroken(fault)
    const stall = watchStall(`${worker.url}/free`)
    // In a busy isolate a timer fires late, and its failure does not count.
    await vi.waitFor(
      async () => {
        await many(6)
        expect(await stack.logged('breaker-opened')).toHaveLength(1)
      },
      { timeout: 15_000 },
    )
    await stack.faults.set(null)
    const start = performance.now()
    while (!(await decided())) expect(performance.now() - start).toBeLessThan(10_000)
    const end = performance.now()
    expect(end - start - (await stall.between(start, end))).toBeLessThan(2000)
    await stall.stop()
    expect(await stack.logged('breaker-closed')).toHaveLength(1)
  },
)

test('A failed batch counts as one failure.', async () => {
  const { worker, calls } = await startBroken('hang', true)
  let requests = 0
  const fail = async () => {
    requests += 4
    await many(4)
  }
  while (calls() < 5) {
    expect(worker.logs.join('\n')).not.toContain('breaker-opened')
    await fail()
  }
  // In a busy isolate a timer fires late, and its failure does not count.
  await vi.waitFor(
    async () => {
      const lines = await stack.logged('breaker-opened')
      if (lines.length === 0) await fail()
      expect(lines).toHaveLength(1)
    },
    { timeout: 20_000 },
  )
  expect(requests).toBeGreaterThan(calls())
  const before = calls()
  await many(20)
  expect(calls() - before).toBeLessThan(3)
})

test.each<FaultText>(['over-quota', 'unauthorized'])(
  'The error %s opens the circuit at once, and two seconds later it is still open.',
  async (fault) => {
    const { calls } = await startBroken(fault)
    await stack.get('/x')
    await many(10)
    await stack.faults.set(null)
    await sleep(2100)
    await many(10)
    expect(calls()).toBe(1)
    expect(await decided()).toBe(false)
  },
)

testNoLeaks(() => stack)
