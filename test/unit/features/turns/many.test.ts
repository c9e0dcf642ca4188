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
    deadline: '20s',
    policies: [
      { name: 'queue', algorithm: 'gcra', limit: 200, window: '1s', key: 'global', wait: '60s' },
    ],
    use: [turns()],
  })
  const env = { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token }
  let ended = 0
  const begin = (count: number) =>
    Array.from({ length: count }, async () => {
      const { allowed, decision } = await sluice.check(new Request('http://localhost/'), { env })
      ended += 1
      return { allowed, decision, at: Date.now() }
    })
  await Promise.all(begin(1))
  collect()
  const before = process.memoryUsage().heapUsed
  const waiting = begin(1_000)
  await expect.poll(() => ended, { interval: 10 }).toBeGreaterThan(1)
  collect()
  const held = 1_001 - ended
  expect(held).toBeGreaterThan(800)
  expect((process.memoryUsage().heapUsed - before) / held).toBeLessThan(20 * 1024)

  await redis.stop()
  const killedAt = Date.now()
  const late = begin(3)
  const answers = await Promise.all(late)
  expect(ended).toBeLessThan(1_000) // new requests do not wait behind those with a place
  for (const { decision } of answers) expect(decision).toMatchObject({ reason: 'store-error' })
  // Those whose call was still under way are decided by the fallback.
  const all = await Promise.all(waiting)
  const placed = all.filter(({ decision }) => decision.reason === 'within-limit')
  expect(placed.length).toBeGreaterThan(all.filter(({ at }) => at < killedAt).length)
  for (const { decision } of all) expect(decision.reason).toMatch(/^(within-limit|store-error)$/)
  // The others go on in the order of their places, but for the time that a reply takes: 100 places are half a second.
  const later = placed.filter(({ at }) => at > killedAt)
  expect(later.length).toBeGreaterThan(100)
  for (let index = 100; index < later.length; index += 1) {
    expect(later[index]!.at).toBeGreaterThanOrEqual(later[index - 100]!.at)
  }
}, 60_000)
