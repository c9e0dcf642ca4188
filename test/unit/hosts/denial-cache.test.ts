/** The denial cache in front of a real Redis: a flood causes few calls, and no request is refused that would pass. */
import { expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { TestClock } from '../../../src/testing/clock.ts'
import { apiOf, apiTokens } from '../../support/api-stack.ts'
import { useGateway } from '../../support/gateway.ts'

const policies: PolicyOptions[] = [
  { name: 'hour', algorithm: 'fixed-window', limit: 3, window: '1h', match: { path: '/hour' } },
  {
    name: 'moment',
    algorithm: 'sliding-window',
    limit: 5,
    window: '2s',
    match: { path: '/moment' },
  },
  { name: 'banned', limit: 3, window: '1s', penalty: 'manual', match: { path: '/banned' } },
]
const clock = new TestClock()
const gateway = useGateway({ config: { policies }, env: apiTokens, clock })
const api = apiOf(gateway.fetch)

let clients = 0
const newIp = () => `198.51.100.${++clients}`
const get = (path: string, ip: string) => gateway.fetch(path, { ip })
async function requestsFor<T>(run: () => Promise<T>): Promise<[T, number]> {
  const before = gateway.httpRequests()
  const result = await run()
  return [result, gateway.httpRequests() - before]
}

test('A flood on an exhausted key causes no call to Redis, and gets the same answers as from Redis.', async () => {
  const ip = newIp()
  for (let time = 0; time < 3; time++) await get('/hour', ip)
  const first = await get('/hour', ip)
  const [answers, requests] = await requestsFor(() =>
    Promise.all(Array.from({ length: 50 }, () => get('/hour', ip))),
  )
  expect(requests).toBe(0)
  for (const { status, headers } of answers) {
    expect(status).toBe(429)
    expect(headers.get('ratelimit-policy')).toBe(first.headers.get('ratelimit-policy'))
    const waited = Number(first.headers.get('retry-after')) - Number(headers.get('retry-after'))
    expect(waited).toBeGreaterThanOrEqual(0)
    expect(waited).toBeLessThanOrEqual(10)
  }
})

test('A client that waits retryAfterMs passes.', async () => {
  const ip = newIp()
  for (let round = 0; round < 5; round++) {
    let last = await get('/moment', ip)
    for (let time = 0; time < 30 && last.status === 200; time++) last = await get('/moment', ip)
    expect(last.status).toBe(429)
    const response = await gateway.fetch('/moment', { ip })
    if (response.status === 200) continue
    const { retryAfterMs } = (await response.json()) as { retryAfterMs: number }
    clock.advance(retryAfterMs)
    expect((await get('/moment', ip)).status).toBe(200)
  }
})

test('An isolate sees its own resets and refunds at once.', async () => {
  const ip = newIp()
  for (let time = 0; time < 5; time++) await get('/hour', ip)
  await api.operate('hour', 'reset', { key: ip })
  expect((await get('/hour', ip)).status).toBe(200)
  for (let time = 0; time < 5; time++) await get('/hour', ip)
  await api.call('/refund', { policy: 'hour', key: ip, cost: 1 })
  expect((await get('/hour', ip)).status).toBe(200)
})

test('An isolate sees its own bans at once, also one that replaces a longer one.', async () => {
  const ip = newIp()
  for (const [length, seconds] of [
    ['1m', 60],
    ['1h', 3_600],
    ['2s', 2],
  ] as const) {
    await api.operate('banned', 'ban', { key: ip, for: length })
    expect((await get('/banned', ip)).headers.get('retry-after')).toBe(`${seconds}`)
  }
  clock.advance(2_001)
  expect((await get('/banned', ip)).status).toBe(200)
})

test('With denialCache false every request causes a call.', async () => {
  const { fetch } = gateway.start({ policies, denialCache: false })
  const ip = newIp()
  for (let time = 0; time < 3; time++) await fetch('/hour', { ip })
  const [, requests] = await requestsFor(async () => {
    for (let time = 0; time < 5; time++) expect((await fetch('/hour', { ip })).status).toBe(429)
  })
  expect(requests).toBe(5)
})
