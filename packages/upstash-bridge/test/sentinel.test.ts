import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Bridge, startBridge } from '../src/index.ts'
import { ask, startSentinels } from './sentinels.ts'
import { Traffic, until } from './traffic.ts'

vi.setConfig({ testTimeout: 120_000 })

const COUNT = "return redis.call('INCR', KEYS[1])"
let sentinels: Awaited<ReturnType<typeof startSentinels>>
let bridge: Bridge
let traffic: Traffic | undefined

beforeAll(async () => {
  sentinels = await startSentinels()
  bridge = await startBridge({ sentinel: { name: 'main', urls: sentinels.urls }, timeout: 20_000 })
}, 90_000)
afterAll(async () => {
  await traffic?.stop()
  await bridge?.close()
  await sentinels?.stop()
})

test('Sentinels that do not know the name are an error.', async () => {
  await expect(startBridge({ sentinel: { name: 'other', urls: sentinels.urls } })).rejects.toThrow(
    'The sentinels name no master "other" that responds',
  )
})

test('After a failover by the sentinels all calls go to the new master, and none runs twice.', async (context) => {
  traffic = new Traffic(bridge, 100, ['a', 'b', 'c'], (key) => ['eval', COUNT, 1, key])
  await until(() => expect(traffic!.answers.length).toBeGreaterThan(100))
  await sentinels.failOver()
  const promoted = performance.now()
  const served = () =>
    traffic!.answers.some(({ status, sent }) => status === 200 && sent > promoted)
  await until(() => expect(served()).toBe(true))
  const answers = await traffic!.stop()
  const failed = answers.filter(({ status }) => status !== 200)
  expect(
    failed.every(({ status, error }) => status === 503 && error?.startsWith('ERR Redis ')),
  ).toBe(true)
  let lost = 0
  for (const key of ['a', 'b', 'c']) {
    const own = answers.filter((answer) => answer.key === key)
    const kept = Number(await ask(sentinels.replica.url, 'GET', key))
    expect(kept).toBeLessThanOrEqual(own.length)
    lost += Math.max(0, own.filter(({ status }) => status === 200).length - kept)
  }
  await context.annotate(JSON.stringify({ requests: answers.length, failed: failed.length, lost }))
})
