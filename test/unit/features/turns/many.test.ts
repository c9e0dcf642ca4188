import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Bridge, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { turns } from '../../../../src/features/turns/index.ts'
import { createSluice } from '../../../../src/hosts/app/sluice.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

let redis: RunningRedis
let bridge: Bridge
beforeAll(async () => {
  redis = await startRedis({ own: true })
  bridge = await startBridge({ redis: redis.url })
})
afterAll(async () => {
  await bridge.close()
  await redis.stop()
})

test('1,000 requests wait in one isolate, each with less than 20 KiB, and after the end of Redis the isolate lets them pass by its own count.', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {}) // the log
  const sluice = createSluice({
    deadline: '60s',
    policies: [
      { name: 'queue', algorithm: 'gcra', limit: 20, window: '1s', key: 'global', wait: '60s' },
    ],
    use: [turns()],
  })
  const env = { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token }
  const client = new AbortController()
  const ended: { allowed: boolean; at: number }[] = []
  const begin = (count: number) =>
    Array.from({ length: count }, async () => {
      const request = new Request('http://localhost/', { signal: client.signal })
      const { decision } = await sluice.check(request, { env })
      const one = { allowed: decision.allowed, at: Date.now() }
      ended.push(one)
      return one
    })
  const held = vi.spyOn(globalThis, 'setTimeout')
  await Promise.all(begin(21)) // the first ones do not wait
  collect()
  const before = process.memoryUsage().heapUsed
  held.mockClear()
  const waiting = begin(1_000)
  // The timers of deadlines are longer, those of batches are shorter.
  const sleeping = () => held.mock.calls.filter(([, ms]) => ms! > 100 && ms! < 55_000).length
  await expect.poll(sleeping, { interval: 10, timeout: 30_000 }).toBeGreaterThan(900)
  collect()
  const left = 1_021 - ended.length
  expect((process.memoryUsage().heapUsed - before) / left).toBeLessThan(20 * 1024)
  held.mockRestore()

  await redis.stop()
  const killedAt = Date.now()
  const isLater = ({ at }: { at: number }) => at > killedAt
  await expect.poll(() => ended.filter(isLater).length, { timeout: 20_000 }).toBeGreaterThan(40)
  // The others end at once if their client goes.
  client.abort()
  await Promise.all(waiting)
  expect(ended).toHaveLength(1_021)
  const passed = ended.filter((one) => one.allowed && isLater(one))
  // An isolate without its database admits no more than the limit. An admission is held for up to 300 ms, until earlier requests have
  // their answers, so those of 1,300 ms may pass within 1,000.
  for (const { at } of passed) {
    const within = passed.filter((other) => other.at >= at && other.at < at + 1_000)
    expect(within.length).toBeLessThanOrEqual(26)
  }
}, 60_000)
