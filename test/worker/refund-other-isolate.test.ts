/** Two isolates on one Redis: the delay until one of them sees refunds, resets and unbans of the other. */
import { type Bridge, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { ConfigOptions } from '../../src/config/options.ts'
import { createGateway } from '../../src/gateway/gateway.ts'

/** The maximum delay. docs/explanation/guarantees.md promises it. */
const LATEST_MS = 10_000
const API_TOKEN = 'a-api-token-for-tests'
const OPERATE = 'an-operate-token-for-tests'

let redis: Awaited<ReturnType<typeof startRedis>>
let bridge: Bridge
beforeAll(async () => {
  redis = await startRedis()
  bridge = await startBridge({ redis: redis.url })
})
afterAll(async () => {
  await bridge.close()
  await redis.stop()
})

// The clock of the isolates only moves when a test moves it. Redis uses the real clock.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())
const advance = (ms: number) => vi.setSystemTime(Date.now() + ms)

const config: ConfigOptions = {
  deadline: '10s',
  policies: [
    { name: 'hour', algorithm: 'fixed-window', limit: 10, window: '1h', key: 'header:x-key' },
    { name: 'banned', limit: 10, window: '1h', key: 'header:x-key', penalty: 'manual' },
  ],
}

/** Starts an isolate: a gateway, which has all of the isolate's memory. */
function startIsolate() {
  const gateway = createGateway(config)
  const env = {
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: bridge.token,
    SLUICE_API_TOKEN: API_TOKEN,
    SLUICE_OPERATE_TOKEN: OPERATE,
  }
  return async function call<T>(path: string, body: object): Promise<T> {
    const token = path.startsWith('/policies') ? OPERATE : API_TOKEN
    const response = await gateway.request(
      `/_sluice/v1${path}`,
      {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      },
      env,
    )
    const answer = (await response.json()) as T
    expect([200, 429], JSON.stringify(answer)).toContain(response.status)
    return answer
  }
}
type Isolate = ReturnType<typeof startIsolate>

/** Sends a request. Returns whether it is allowed, and the number of calls to Redis. */
async function decide(isolate: Isolate, policy: string, key: string) {
  const before = bridge.stats()[bridge.token]!.http
  const { allowed } = await isolate<{ allowed: boolean }>('/decide', { policy, key })
  return [allowed, bridge.stats()[bridge.token]!.http - before]
}

test.each<[action: string, policy: string, path: string, body: object]>([
  ['a refund', 'hour', '/refund', { policy: 'hour', cost: 8 }],
  ['a reset', 'hour', '/policies/hour/reset', {}],
  ['an unban', 'banned', '/policies/banned/unban', {}],
])(
  'An isolate sees %s of another isolate after at most ten seconds.',
  async (action, policy, path, body) => {
    const [isolate, other] = [startIsolate(), startIsolate()]
    const key = action
    if (policy === 'banned') await other('/policies/banned/ban', { key, for: '1h' })
    else await isolate('/decide', { policy, key, cost: 10 })
    expect(await decide(isolate, policy, key)).toEqual([false, 1])
    expect(await decide(isolate, policy, key)).toEqual([false, 0]) // from memory

    await other(path, { ...body, key })
    expect(await decide(other, policy, key)).toEqual([true, 1])
    advance(LATEST_MS)
    expect(await decide(isolate, policy, key)).toEqual([true, 1])
  },
)

test.each<[action: string, path: string, body: object]>([
  ['a refund', '/refund', { policy: 'hour', cost: 8 }],
  ['a reset', '/policies/hour/reset', {}],
])('An isolate sees %s that it made at once.', async (action, path, body) => {
  const isolate = startIsolate()
  const key = `own-${action}`
  await isolate('/decide', { policy: 'hour', key, cost: 10 })
  expect(await decide(isolate, 'hour', key)).toEqual([false, 1])
  expect(await decide(isolate, 'hour', key)).toEqual([false, 0])
  await isolate(path, { ...body, key })
  expect(await decide(isolate, 'hour', key)).toEqual([true, 1])
})

test('An isolate that has not refused a key sees a refund of another isolate at once.', async () => {
  const [isolate, other] = [startIsolate(), startIsolate()]
  const key = 'never-refused'
  await isolate('/decide', { policy: 'hour', key, cost: 10 })
  await other('/refund', { policy: 'hour', key, cost: 8 })
  expect(await decide(isolate, 'hour', key)).toEqual([true, 1])
})
