import { startBridge, startRedis } from 'sluice-upstash-bridge'
import { expect, test } from 'vitest'
import { parseOpenMetrics } from '../support/open-metrics.ts'

test('/metrics is valid OpenMetrics with the requests, the commands and their durations.', async () => {
  const redis = await startRedis({ own: true })
  const bridge = await startBridge({ redis: redis.url })
  const send = (path: string, body: unknown, token = 'dev') =>
    fetch(bridge.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
  await send('/pipeline', [['ping'], ['ping']])
  await send('/', ['eval', "redis.call('set', KEYS[1], 1)", 1, 'k'])
  await send('/', ['get'])
  const response = await send('/metrics', '')
  const { status, headers } = response
  const text = await response.text()
  expect(status).toBe(200)
  expect(headers.get('content-type')).toContain('application/openmetrics-text; version=1.0.0')
  const families = parseOpenMetrics(text)
  const samples = (name: string) =>
    families.get(`upstash_bridge_${name}`)!.samples.map(({ labels, value }) => [labels, value])
  expect(samples('requests')).toEqual([
    [{ status: '200' }, 2],
    [{ status: '400' }, 1],
  ])
  expect(samples('commands')).toEqual([
    [{ origin: 'client' }, 4],
    [{ origin: 'script' }, 1],
  ])
  expect(samples('databases_up')).toEqual([[{}, 1]])
  expect(samples('request_duration_seconds').at(-1)).toEqual([{}, 3])
  expect((await send('/metrics', '', 'wrong')).status).toBe(401)
  await bridge.close()
  await redis.stop()
})
