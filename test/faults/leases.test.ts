/** Leases in workerd: no request hangs if clients hang up or the store fails. */
import { Agent, type RequestOptions } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { RunningWorker } from '../../tools/worker.ts'
import { CROSS_REQUEST_IO } from '../support/cross-request-io.ts'
import {
  askDirectly,
  callsOf,
  type FaultStack,
  many,
  startFaultStack,
  statuses,
} from '../support/fault-stack.ts'
import { isLong } from '../support/long.ts'

const policy = {
  name: 'leased',
  algorithm: 'fixed-window',
  limit: 1_000_000,
  window: '1d',
  key: 'header:x-key',
  onStoreError: 'deny',
  lease: { max: 10, ttl: '10s' },
} as const
const config: ConfigOptions = {
  deadline: '10s',
  policies: [
    { ...policy, match: { path: '/' } },
    { ...policy, name: 'small', limit: 500, match: { path: '/small' } },
    { ...policy, name: 'hasty', deadline: '500ms', match: { path: '/hasty' } },
    { ...policy, name: 'global', limit: 400, key: 'global', match: { path: '/each' } },
    {
      name: 'each',
      limit: 5,
      window: '1d',
      key: 'header:x-key',
      onStoreError: 'deny',
      match: { path: '/each' },
    },
  ],
}

let stack: FaultStack
let worker: RunningWorker
let isBatching: boolean
let keys = 0
const newKey = () => `key-${++keys}`

beforeAll(async () => {
  stack = await startFaultStack()
})
afterAll(() => stack.stop())
afterEach(async () => {
  await stack.faults.set(null)
  expect(worker.logs.join('\n')).not.toMatch(CROSS_REQUEST_IO)
})

/** Starts an isolate with or without batching, unless it runs already. */
async function startWith(batching: boolean) {
  if (worker && isBatching === batching) return
  worker = await stack.renew({ ...config, batching })
  isBatching = batching
}

const ask = (key: string, options: RequestOptions = {}, path = '/') =>
  askDirectly(worker, key, options, path)
const askAndHangUp = (key: string, afterMs: number) =>
  ask(key, { signal: AbortSignal.timeout(afterMs) }).catch(() => undefined)
const calls = () => callsOf(stack)

/** A key with enough recent requests for leases. */
async function hotKey(path = '/'): Promise<string> {
  const key = newKey()
  for (let round = 0; round < 3; round++) await many(20, () => ask(key, {}, path))
  return key
}

const soakMs = Number(process.env.SOAK_MS ?? (isLong ? 4000 : 0))
/** The number of clients, and of the decisions of which the calls are counted. */
const [CLIENTS, DECISIONS] = isLong ? [64, 500] : [16, 200]

test(
  'All requests of busy clients are answered with one call for about ten requests.',
  async () => {
    // Run it with SOAK_MS=60000 before a release. Without batching each call refills one lease.
    await startWith(false)
    const key = await hotKey()
    const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
    const until = performance.now() + soakMs
    const tally: Record<string, number> = {}
    const before = calls()
    let answered = 0
    let slice = { start: performance.now(), calls: before, answered }
    /** The calls a decision, by second. A stall of the machine spoils some of them. */
    const ratios: number[] = []
    await many(CLIENTS, async () => {
      while (performance.now() < until || ratios.length === 0) {
        if (answered++ % 500 === 0) void askAndHangUp(newKey(), 5)
        const { status } = await ask(key, { agent }).catch((error) => ({ status: error.code }))
        tally[status] = (tally[status] ?? 0) + 1
        const decisions = answered - slice.answered
        if (performance.now() < slice.start + 1000 || decisions < DECISIONS) continue
        ratios.push((calls() - slice.calls) / decisions)
        slice = { start: performance.now(), calls: calls(), answered }
      }
    })
    agent.destroy()
    if (process.env.SOAK_MS)
      console.log(tally, `${((calls() - before) / answered).toFixed(3)} calls a decision`)
    expect(Object.keys(tally)).toEqual(['200'])
    expect(answered).toBeGreaterThanOrEqual(DECISIONS)
    expect(Math.min(...ratios)).toBeLessThan(0.12)
  },
  soakMs + 60_000,
)

const batchings = isLong ? [true, false] : [true]

test.each(batchings)(
  'With leases exactly the limit is admitted (batching: %s).',
  async (batching) => {
    await startWith(batching)
    const key = newKey()
    const answers = (await many(20, () => many(40, () => ask(key, {}, '/small')))).flat()
    expect(statuses(answers)).toEqual([...Array(500).fill(200), ...Array(300).fill(429)])
  },
)

test.each(batchings)(
  'Other requests get their answers if the client whose call refills the lease hangs up (batching: %s).',
  async (batching) => {
    await startWith(batching)
    await stack.faults.set('late=100')
    for (let round = 0; round < (isLong ? 3 : 1); round++) {
      const key = await hotKey()
      await many(12, () => ask(key)) // spends the units of the lease
      const hungUp = many(8, (index) => askAndHangUp(key, 20 + index))
      const answers = await many(30, () => ask(key))
      expect(statuses(answers)).toEqual(Array(30).fill(200))
      await hungUp
      // At most the requests of clients that hung up and two leases are charged in addition.
      const { remaining } = await ask(key)
      expect(remaining).toBeLessThanOrEqual(policy.limit - 103)
      expect(remaining).toBeGreaterThanOrEqual(policy.limit - 103 - 8 - 20)
    }
  },
)

test.each(
  isLong
    ? (['hang', 'lose', 'reset', 'reset-after', 'html=502'] as const)
    : (['hang', 'reset'] as const),
)(
  'If the store fails (%s), the units of a lease are spent first, then requests get the fallback within the deadline.',
  async (fault) => {
    await startWith(true)
    const key = await hotKey('/hasty')
    let { remaining } = await ask(key, {}, '/hasty')
    await stack.faults.set(fault)
    const start = performance.now()
    const answers = await many(100, () => ask(key, {}, '/hasty'))
    expect(performance.now() - start).toBeLessThan(3000)
    const passed = answers.filter(({ status }) => status === 200)
    expect(passed.length).toBeLessThan(10)
    for (const answer of passed) expect(answer.remaining).toBe(--remaining!)
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(100 - passed.length)
    await stack.faults.set(null)
    await expect.poll(async () => (await ask(key, {}, '/hasty')).status).toBe(200)
  },
)
