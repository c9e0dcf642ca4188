import { setTimeout as sleep } from 'node:timers/promises'
import { type StallMeter, watchStall } from 'sluice-bench'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { FaultText } from '../support/fault-proxy/index.ts'
import { type FaultStack, many as repeat, startFaultStack } from '../support/fault-stack.ts'
import { isLong } from '../support/long.ts'
import { testNoLeaks } from '../support/no-leaks.ts'

const DEADLINE = 400
let stack: FaultStack
beforeAll(async () => {
  stack = await startFaultStack()
})
afterAll(() => stack.stop())

/** Starts a Worker, loads the script, and starts the fault. `calls` counts the calls since then. */
async function startBroken(fault: FaultText) {
  const worker = await stack.renew({
    deadline: DEADLINE,
    batching: false,
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
const decided = async (on = stack) => (await on.get('/x')).headers.has('ratelimit')
const many = (count: number) => repeat(count, () => stack.get('/x'))

/** Ends the fault. */
async function expectToClose(stall: StallMeter) {
  await stack.faults.set(null)
  const start = performance.now()
  while (!(await decided())) expect(performance.now() - start).toBeLessThan(10_000)
  const end = performance.now()
  expect(end - start - (await stall.between(start, end))).toBeLessThan(2000)
  await stall.stop()
  expect(await stack.logged('breaker-closed')).toHaveLength(1)
}

test('Five failures open the circuit: then answers come at once, and one request a second calls the store, until the fault ends.', async () => {
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
  // On a slow machine the trial call starts late.
  while (elapsed() < 2500 || (calls() === failed && elapsed() < 15_000)) {
    const answers = await many(4)
    expect(answers.map(({ status, passed }) => [status, passed])).toEqual(
      Array(4).fill([200, true]),
    )
    times.push(...answers.map(({ ms }) => ms))
    // The trial call fails after the deadline, and keeps the circuit open for another second.
    expect(calls() - failed).toBeLessThanOrEqual(elapsed() / 1000)
    await sleep(50)
  }
  expect(calls()).toBeGreaterThan(failed)
  const waited = times.filter((ms) => ms > DEADLINE - 20)
  const stalledMs = await stall.between(start, performance.now())
  expect(waited.length).toBeLessThanOrEqual(calls() - failed + stalledMs / (DEADLINE - 20))
  expect((await stack.logged('breaker-opened')).map(({ code }) => code)).toEqual(['timeout'])
  await expectToClose(stall)
})

test.each<FaultText>(
  isLong ? ['refuse', 'reset', 'reset-body', 'html', 'status=503', 'redis-error'] : ['reset'],
)('The circuit closes by itself within two seconds after the fault %s ends.', async (fault) => {
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
  await expectToClose(stall)
})

testNoLeaks(() => ({ output: stack.output }))
