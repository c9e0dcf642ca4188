/** The denial cache through the whole stack: a flood causes few calls, and no request is refused that would pass. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PolicyOptions } from '../../src/config/options.ts'
import { type Api, startApi } from '../support/api-stack.ts'

const policies: PolicyOptions[] = [
  { name: 'hour', algorithm: 'fixed-window', limit: 3, window: '1h', match: { path: '/hour' } },
  {
    name: 'moment',
    algorithm: 'sliding-window',
    limit: 5,
    window: '2s',
    match: { path: '/moment' },
  },
  {
    name: 'banning',
    algorithm: 'fixed-window',
    limit: 1,
    window: '1h',
    penalty: { after: 2, within: '1m', ban: '1m' },
    match: { path: '/banning' },
  },
]
let api: Api
beforeAll(async () => {
  api = await startApi({ policies })
})
afterAll(() => api?.stop())

let clients = 0
const newIp = () => `198.51.100.${++clients}`
const get = async (path: string, ip: string) => {
  const response = await api.stack.fetch(path, { ip })
  await response.arrayBuffer()
  return response
}
async function requestsFor<T>(run: () => Promise<T>): Promise<[T, number]> {
  const before = api.stack.httpRequests()
  const result = await run()
  return [result, api.stack.httpRequests() - before]
}

test('A flood on an exhausted key causes no call to Redis, and gets the same answers as from Redis.', async () => {
  const ip = newIp()
  for (let time = 0; time < 3; time++) await get('/hour', ip)
  const first = await get('/hour', ip)
  const [answers, requests] = await requestsFor(() =>
    Promise.all(Array.from({ length: 200 }, () => get('/hour', ip))),
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
    const response = await api.stack.fetch('/moment', { ip })
    if (response.status === 200) continue
    const { retryAfterMs } = (await response.json()) as { retryAfterMs: number }
    await sleep(retryAfterMs + 2) // timers of Node may fire a millisecond early
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

test('Every refusal counts towards a ban, and a ban causes no call while it lasts.', async () => {
  const ip = newIp()
  const titles = []
  for (let time = 0; time < 4; time++) {
    const response = await api.stack.fetch('/banning', { ip })
    titles.push(((await response.json()) as { title?: string }).title)
  }
  expect(titles.slice(1)).toEqual([
    'Quota exceeded',
    'Abnormal usage detected',
    'Abnormal usage detected',
  ])
  const [answers, requests] = await requestsFor(() =>
    Promise.all(Array.from({ length: 50 }, () => get('/banning', ip))),
  )
  expect([requests, new Set(answers.map(({ status }) => status))]).toEqual([0, new Set([429])])
  await api.operate('banning', 'unban', { key: ip })
  await api.operate('banning', 'reset', { key: ip })
  expect((await get('/banning', ip)).status).toBe(200)
})

test('With denialCache false every request causes a call.', async () => {
  const off = await startApi({ policies, denialCache: false })
  try {
    for (let time = 0; time < 3; time++) await off.stack.fetch('/hour')
    const before = off.stack.httpRequests()
    for (let time = 0; time < 5; time++) expect((await off.stack.fetch('/hour')).status).toBe(429)
    expect(off.stack.httpRequests() - before).toBe(5)
  } finally {
    await off.stop()
  }
})
