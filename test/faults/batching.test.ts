/** Batching in workerd, which fails requests that wait for the I/O of another request. Such failures only appear under load. */
import { Agent, type RequestOptions } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Hono } from 'hono'
import { startChaosStack } from 'sluice-bench'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { rateLimiter } from '../../src/hosts/app/middleware.ts'
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
import { testNoLeaks } from '../support/no-leaks.ts'
import { secrets } from '../support/secrets.ts'

const LIMIT = 20
const config: ConfigOptions = {
  deadline: '10s',
  policies: [
    {
      name: 'a',
      algorithm: 'fixed-window',
      limit: LIMIT,
      window: '1d',
      key: 'header:x-key',
      match: { path: '/*', not: { path: ['/failures', '/hasty'] } },
    },
    {
      // Refunds every request, because the origin answers none with 5xx.
      name: 'failures',
      algorithm: 'fixed-window',
      limit: 1000,
      window: '1d',
      key: 'header:x-key',
      match: { path: '/failures' },
      countOnly: '5xx',
    },
    {
      name: 'hasty',
      algorithm: 'fixed-window',
      limit: LIMIT,
      window: '1d',
      key: 'header:x-key',
      deadline: '500ms',
      match: { path: '/hasty' },
    },
  ],
}

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

/** Starts a new isolate, and loads the script. */
async function renew(change: Partial<ConfigOptions> = {}) {
  worker = await stack.renew({ ...config, ...change })
  for (let i = 0; i < 3; i++) await ask(newKey())
}

const ask = (key: string, options: RequestOptions = {}, path = '/') =>
  askDirectly(worker, key, options, path)
const askAndHangUp = (key: string, afterMs: number) =>
  ask(key, { signal: AbortSignal.timeout(afterMs) }).catch(() => undefined)

const calls = () => callsOf(stack)

describe('200 concurrent requests', () => {
  test.each(isLong ? [true, false] : [true])(
    'Of 200 concurrent requests of one key exactly the limit is admitted (batching: %s).',
    async (batching) => {
      if (!batching) await renew({ batching })
      const key = newKey()
      const before = calls()
      const answers = await many(200, () => ask(key))
      expect(statuses(answers)).toEqual([
        ...Array(LIMIT).fill(200),
        ...Array(200 - LIMIT).fill(429),
      ])
      // Each unit was given to one request.
      const remaining = answers
        .filter(({ status }) => status === 200)
        .map(({ remaining }) => remaining!)
      expect(remaining.sort((a, b) => a - b)).toEqual([...Array(LIMIT).keys()])
      if (batching) expect(calls() - before).toBeLessThan(100)
      else expect(calls() - before).toBe(200)
    },
  )

  test('200 concurrent requests are all decided on a new isolate, and while Redis loses the script.', async () => {
    worker = await stack.renew(config)
    const [first, second] = [newKey(), newKey()]
    expect(statuses(await many(200, () => ask(first))).slice(0, LIMIT + 1)).toEqual([
      ...Array(LIMIT).fill(200),
      429,
    ])
    await stack.faults.set('noscript')
    const answers = await many(200, () => ask(second))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(LIMIT)
  })
})

test('The middleware outside of Workers batches requests, too.', async () => {
  const app = new Hono().use(rateLimiter(config)).get('/', (c) => c.text('ok'))
  const env = { UPSTASH_REDIS_REST_URL: stack.faults.url, UPSTASH_REDIS_REST_TOKEN: secrets.token }
  const request = async (key: string) =>
    (await app.request('/', { headers: { 'x-key': key } }, env)).status
  expect(await request(newKey())).toBe(200)
  const [key, before] = [newKey(), calls()]
  expect((await many(64, () => request(key))).sort()).toEqual([
    ...Array(LIMIT).fill(200),
    ...Array(64 - LIMIT).fill(429),
  ])
  expect(calls() - before).toBeLessThan(32)
})

describe('clients that hang up while their call is in flight', () => {
  test('Other requests of a batch get their answers if clients of the batch hang up, and no request is charged twice.', async () => {
    await stack.faults.set('late=150')
    for (const lead of isLong ? [0, 10, 40] : [10]) {
      const key = newKey()
      // The clients that hang up come first, so their requests send the batch.
      const hungUp = many(8, (index) => askAndHangUp(key, 20 + lead + index))
      if (lead > 0) await sleep(lead)
      const answers = await many(8, () => ask(key))
      expect(statuses(answers)).toEqual(Array(8).fill(200))
      expect(await hungUp).toEqual(Array(8).fill(undefined))
      const { remaining } = await ask(key)
      expect(remaining).toBeLessThanOrEqual(LIMIT - 1 - 8)
      expect(remaining).toBeGreaterThanOrEqual(LIMIT - 1 - 16)
    }
  })

  test('Requests after a batch whose clients have all hung up are decided.', async () => {
    await stack.faults.set('late=300')
    await many(100, () => askAndHangUp(newKey(), 50))
    await stack.faults.set(null)
    const answers = await many(50, () => ask(newKey()))
    expect(answers).toEqual(Array(50).fill({ status: 200, remaining: LIMIT - 1 }))
  })
})

describe('a store that fails', () => {
  test.each(
    isLong
      ? (['hang', 'lose', 'reset', 'reset-after', 'html=502'] as const)
      : (['hang', 'reset'] as const),
  )(
    'If the store fails (%s) while 100 requests wait, each gets the fallback within its deadline, and later requests are decided.',
    async (fault) => {
      await stack.faults.set(fault)
      const start = performance.now()
      const answers = await many(100, () => ask(newKey(), {}, '/hasty'))
      expect(answers).toEqual(Array(100).fill({ status: 200, remaining: undefined }))
      expect(performance.now() - start).toBeLessThan(10_000) // without the deadline, 20 s
      await stack.faults.set(null)
      await expect.poll(async () => (await ask(newKey(), {}, '/hasty')).remaining).toBe(LIMIT - 1)
    },
  )

  test.runIf(isLong)(
    'If Redis is killed while 99 requests wait, only policies with onStoreError deny answer with 5xx.',
    async () => {
      const chaos = await startChaosStack()
      worker = chaos.worker
      const round = async () => {
        const key = newKey()
        const paths = ['/allow/many', '/local/many', '/deny/many']
        return many(99, async (index) => (await ask(key, {}, paths[index % 3])).status)
      }
      try {
        await expect
          .poll(async () => new Set(await round()), { timeout: 25_000 })
          .toEqual(new Set([200]))
        await chaos.faults.set('delay=100')
        const interrupted = round()
        await sleep(50)
        await chaos.kill()
        const answers = [...(await interrupted), ...(await round())]
        answers.forEach((status, index) => {
          expect(index % 3 === 2 ? [200, 503] : [200, 429]).toContain(status)
        })
        await chaos.faults.set(null)
        await chaos.restart()
        await expect
          .poll(async () => new Set(await round()), { timeout: 25_000 })
          .toEqual(new Set([200]))
      } finally {
        await chaos.stop()
      }
    },
    60_000,
  )
})

const soakMs = Number(process.env.SOAK_MS ?? (isLong ? 5000 : 500))
const CLIENTS = isLong ? 64 : 16

test(
  'All requests of busy clients are answered, and no key admits more than its limit.',
  async () => {
    // Run it with SOAK_MS=60000 before a release.
    if (isLong) await renew()
    const [soak, before] = [newKey(), calls()]
    const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
    const until = performance.now() + soakMs
    const tally: Record<string, number> = {}
    const admitted = new Map<string, number>()
    const failures: number[] = []
    let answered = 0
    const client = async () => {
      while (performance.now() < until || answered <= 100 || !tally[429]) {
        const turn = answered++
        const key = `${soak}-${turn % 4}-${Math.floor(turn / (8 * LIMIT))}` // each admits half of its requests
        if (turn % 500 === 0) void askAndHangUp(newKey(), 5)
        if (turn % 50 === 0)
          failures.push(
            (await ask('soak', { agent, headers: { 'x-key': key } }, '/failures')).status,
          )
        const { status } = await ask(key, { agent }).catch((error) => ({ status: error.code }))
        tally[status] = (tally[status] ?? 0) + 1
        if (status === 200) admitted.set(key, (admitted.get(key) ?? 0) + 1)
      }
    }
    await many(CLIENTS, client)
    agent.destroy()
    if (process.env.SOAK_MS)
      console.log(
        tally,
        `${((calls() - before) / answered).toFixed(3)} calls a decision, ${admitted.size} keys`,
      )
    expect(Object.keys(tally)).toEqual(['200', '429'])
    expect(new Set(failures)).toEqual(new Set([200]))
    expect(Math.max(...admitted.values())).toBe(LIMIT)
    // How many share a call depends on how busy the machine is.
    expect(calls() - before).toBeLessThan(answered)
  },
  soakMs + 60_000,
)

testNoLeaks(() => stack)
