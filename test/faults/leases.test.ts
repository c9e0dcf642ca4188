/** Leases through the front door, in workerd: nobody hangs, whoever leaves, whatever the store does. */
import { Agent, get, type IncomingMessage, type RequestOptions } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { RunningWorker } from '../../dev/worker.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { CROSS_REQUEST_IO } from '../support/cross-request-io.ts'
import { type FaultStack, startFaultStack } from '../support/fault-stack.ts'

const policy = {
  name: 'leased',
  algorithm: 'fixed-window',
  limit: 1_000_000,
  window: '1d',
  key: 'header:x-key',
  onStoreError: 'deny',
  lease: { max: 10, ttl: '10s' },
} as const
const config: ConfigOptions = { deadline: '10s', policies: [policy] }

let stack: FaultStack
let worker: RunningWorker
let keys = 0
const newKey = () => `key-${++keys}`

beforeAll(async () => {
  stack = await startFaultStack()
  await renew()
})
afterAll(() => stack.stop())
afterEach(async () => {
  await stack.faults.set(null)
  expect(worker.logs.join('\n')).not.toMatch(CROSS_REQUEST_IO)
})

async function renew(change: Partial<ConfigOptions> = {}) {
  worker = await stack.renew({ ...config, ...change })
}

interface Answer {
  status: number
  /** What `RateLimit` says is left. */
  left: number | undefined
}

/** Without Miniflare's entry: what becomes of a connection, workerd sees. */
const ask = (key: string, options: RequestOptions = {}) =>
  new Promise<Answer>((resolve, reject) => {
    const whole = async (response: IncomingMessage) => {
      for await (const _ of response);
      const left = /;r=(\d+)/.exec(String(response.headers.ratelimit))?.[1]
      resolve({ status: response.statusCode!, left: left === undefined ? left : Number(left) })
    }
    get(worker.directUrl, { headers: { 'x-key': key }, ...options }, (response) => {
      whole(response).catch(reject)
    }).on('error', reject)
  })
const leaving = (key: string, afterMs: number) =>
  ask(key, { signal: AbortSignal.timeout(afterMs) }).catch(() => undefined)
const many = <T>(count: number, what: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => what(index)))
const calls = () => Object.values(stack.faults.counts().arrived).reduce((sum, one) => sum + one, 0)
const statuses = (answers: Answer[]) => answers.map(({ status }) => status).sort()

/** So often asked for that it is worth leases. */
async function hotKey(): Promise<string> {
  const key = newKey()
  for (let round = 0; round < 3; round++) await many(20, () => ask(key))
  return key
}

test(
  '64 clients that never stop are all answered, one call for ten of them',
  async () => {
    // The longer the surer: with SOAK_MS=60000 before a release. Not shared, so that each call is one refill.
    await renew({ batching: false })
    const key = await hotKey()
    const agent = new Agent({ keepAlive: true, maxSockets: 64 })
    const soakMs = Number(process.env.SOAK_MS ?? 4000)
    const until = performance.now() + soakMs
    const tally: Record<string, number> = {}
    const before = calls()
    let answered = 0
    await many(64, async () => {
      while (performance.now() < until) {
        if (answered++ % 500 === 0) void leaving(newKey(), 5)
        const { status } = await ask(key, { agent }).catch((error) => ({ status: error.code }))
        tally[status] = (tally[status] ?? 0) + 1
      }
    })
    agent.destroy()
    if (process.env.SOAK_MS)
      console.log(tally, `${((calls() - before) / answered).toFixed(3)} calls a decision`)
    expect(Object.keys(tally)).toEqual(['200'])
    expect(answered).toBeGreaterThan(500)
    expect((calls() - before) / answered).toBeLessThan(0.12)
  },
  Number(process.env.SOAK_MS ?? 4000) + 30_000,
)

test.each([true, false])(
  'a quota is used up to the last unit, and not beyond (batching: %s)',
  async (batching) => {
    await renew({ batching, policies: [{ ...policy, limit: 500 }] })
    const key = newKey()
    const answers = (await many(20, () => many(40, () => ask(key)))).flat()
    expect(statuses(answers)).toEqual([...Array(500).fill(200), ...Array(300).fill(429)])
  },
)

describe('clients that hang up while their call brings what others wait for', () => {
  test.each([true, false])('leave the others their answers (batching: %s)', async (batching) => {
    await renew({ batching })
    await stack.faults.set('late=100')
    for (let round = 0; round < 3; round++) {
      const key = await hotKey()
      await many(12, () => ask(key)) // whatever was held is spent
      const gone = many(8, (index) => leaving(key, 20 + index))
      const answers = await many(30, () => ask(key))
      expect(statuses(answers)).toEqual(Array(30).fill(200))
      await gone
      // Who left has been charged, or what he waited for is lost: never more than he and a lease.
      const { left } = await ask(key)
      expect(left).toBeLessThanOrEqual(policy.limit - 103)
      expect(left).toBeGreaterThanOrEqual(policy.limit - 103 - 8 - 20)
    }
  })
})

describe('a store that fails', () => {
  test.each(['hang', 'lose', 'reset', 'reset-after', 'html=502'] as const)(
    '(%s): what is held is spent, then each is answered as its policy says, within its deadline',
    async (fault) => {
      await renew({ deadline: 500 })
      const key = await hotKey()
      let { left } = await ask(key)
      await stack.faults.set(fault)
      const start = performance.now()
      const answers = await many(100, () => ask(key))
      expect(performance.now() - start).toBeLessThan(3000)
      const passed = answers.filter(({ status }) => status === 200)
      expect(passed.length).toBeLessThan(10)
      for (const answer of passed) expect(answer.left).toBe(--left!)
      expect(answers.filter(({ status }) => status === 503)).toHaveLength(100 - passed.length)
      await stack.faults.set(null)
      await expect.poll(async () => (await ask(key)).status, { timeout: 5000 }).toBe(200)
    },
  )
})

test('a policy that is not leased is asked each time, and what it refuses spends nothing of a lease', async () => {
  await renew({
    policies: [
      { ...policy, limit: 400, key: 'global' },
      { name: 'each', limit: 5, window: '1d', key: 'header:x-key', onStoreError: 'deny' },
    ],
  })
  const key = newKey()
  const first = await many(100, () => ask(newKey()))
  expect(new Set(statuses(first))).toEqual(new Set([200]))
  const answers = await many(30, () => ask(key))
  expect(statuses(answers)).toEqual([...Array(5).fill(200), ...Array(25).fill(429)])
  // Of all at once some are refused while another has the last lease on its way; what is left of it is for those who come after.
  const others = await many(400, () => ask(newKey()))
  for (let more = 0; more < 20; more++) others.push(await ask(newKey()))
  expect(others.filter(({ status }) => status === 200)).toHaveLength(295)
})
