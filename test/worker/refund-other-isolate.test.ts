/** Two isolates on one Redis: how late one of them sees what the other one returned to a client. */

import { type Bridge, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { ConfigOptions } from '../../src/config/options.ts'
import { createGateway } from '../../src/gateway/gateway.ts'

/** docs/reference/log-events.md promises it. */
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

// The isolates' clock stands still unless a test moves it. Redis goes by its own.
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

/** An isolate keeps all that it remembers in its gateway. */
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

/** Whether the request passes, and how many calls to Redis the answer took. */
async function ask(isolate: Isolate, policy: string, key: string) {
  const before = bridge.stats()[bridge.token]!.http
  const { allowed } = await isolate<{ allowed: boolean }>('/decide', { policy, key })
  return [allowed, bridge.stats()[bridge.token]!.http - before]
}

test.each<[what: string, policy: string, path: string, body: object]>([
  ['a refund', 'hour', '/refund', { policy: 'hour', cost: 8 }],
  ['a reset', 'hour', '/policies/hour/reset', {}],
  ['an unban', 'banned', '/policies/banned/unban', {}],
])(
  '%s made by another isolate is seen after ten seconds at the latest',
  async (what, policy, path, body) => {
    const [here, elsewhere] = [startIsolate(), startIsolate()]
    const key = what
    if (policy === 'banned') await elsewhere('/policies/banned/ban', { key, for: '1h' })
    else await here('/decide', { policy, key, cost: 10 })
    expect(await ask(here, policy, key)).toEqual([false, 1])
    expect(await ask(here, policy, key)).toEqual([false, 0]) // from memory

    await elsewhere(path, { ...body, key })
    expect(await ask(elsewhere, policy, key)).toEqual([true, 1])
    advance(LATEST_MS)
    expect(await ask(here, policy, key)).toEqual([true, 1])
  },
)

test.each<[what: string, path: string, body: object]>([
  ['a refund', '/refund', { policy: 'hour', cost: 8 }],
  ['a reset', '/policies/hour/reset', {}],
])('%s is seen at once by the isolate that made it', async (what, path, body) => {
  const here = startIsolate()
  const key = `own-${what}`
  await here('/decide', { policy: 'hour', key, cost: 10 })
  expect(await ask(here, 'hour', key)).toEqual([false, 1])
  expect(await ask(here, 'hour', key)).toEqual([false, 0])
  await here(path, { ...body, key })
  expect(await ask(here, 'hour', key)).toEqual([true, 1])
})

test('an isolate that has refused nothing sees a refund made by another one at once', async () => {
  const [here, elsewhere] = [startIsolate(), startIsolate()]
  const key = 'never-kept'
  await here('/decide', { policy: 'hour', key, cost: 10 })
  await elsewhere('/refund', { policy: 'hour', key, cost: 8 })
  expect(await ask(here, 'hour', key)).toEqual([true, 1])
})
