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

test('1,000 requests wait in one isolate, each with less than 20 KiB, and after the end of Redis every wait ends.', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {}) // the log
  const sluice = createSluice({
    deadline: '60s',
    policies: [
      { name: 'queue', algorithm: 'gcra', limit: 40, window: '1s', key: 'global', wait: '60s' },
    ],
    use: [turns()],
  })
  const env = { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token }
  const client = new AbortController()
  const ended: { reason: string; at: number }[] = []
  const begin = (count: number) =>
    Array.from({ length: count }, async () => {
      const request = new Request('http://localhost/', { signal: client.signal })
      const { decision } = await sluice.check(request, { env })
      const one = { reason: decision.reason, at: Date.now() }
      ended.push(one)
      return one
    })
  const held = vi.spyOn(globalThis, 'setTimeout')
  await Promise.all(begin(41)) // the first 40 do not wait
  collect()
  const before = process.memoryUsage().heapUsed
  held.mockClear()
  const waiting = begin(1_000)
  // The timers of deadlines are longer, those of batches are shorter.
  const sleeping = () => held.mock.calls.filter(([, ms]) => ms! > 100 && ms! < 40_000).length
  await expect.poll(sleeping, { interval: 10, timeout: 20_000 }).toBeGreaterThan(900)
  collect()
  const left = 1_041 - ended.length
  expect((process.memoryUsage().heapUsed - before) / left).toBeLessThan(20 * 1024)
  held.mockRestore()

  await redis.stop()
  const killedAt = Date.now()
  // New requests do not wait behind those with a place.
  for (const { reason } of await Promise.all(begin(3))) expect(reason).toBe('store-error')
  expect(ended.length).toBeLessThan(1_044)
  // Those with a place go on in its order, but for the time that a reply takes: 40 places are a second.
  const first = ended.length
  await expect.poll(() => ended.length, { timeout: 10_000 }).toBeGreaterThan(first + 60)
  // The others end at once if their client goes.
  client.abort()
  const all = await Promise.all(waiting)
  expect(ended).toHaveLength(1_044)
  const placed = all.filter(({ reason, at }) => reason === 'within-limit' && at > killedAt)
  expect(placed.length).toBeGreaterThan(40)
  for (let index = 40; index < placed.length; index += 1)
    expect(placed[index]!.at).toBeGreaterThanOrEqual(placed[index - 40]!.at)
}, 60_000)
