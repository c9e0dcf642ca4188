/** The shield through the whole stack, with the rate-limit binding of Miniflare. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FetchOptions, type Stack, startStack } from '../../dev/stack.ts'
import { startWorker } from '../../dev/worker.ts'
import type { ConfigOptions } from '../../src/config/options.ts'

const API_TOKEN = 'a-api-token-for-tests'
const config: ConfigOptions = {
  deadline: '10s',
  denialCache: false, // so that every request that the shield admits reaches Redis
  shield: { binding: 'SHIELD', limit: 20, period: '60s' },
  policies: [
    { name: 'few', limit: 3, window: '1h', match: { path: '/few' } },
    { name: 'many', limit: 9, window: '1h', match: { path: '/many' }, check: 'parallel' },
    { name: 'trial', limit: 3, window: '1h', match: { path: '/trial' }, mode: 'shadow' },
  ],
}
const ratelimits = { SHIELD: { limit: 20, period: 60 as const } }

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config, ratelimits, env: { SLUICE_API_TOKEN: API_TOKEN } })
  // The binding counts by the minute of the clock, and all tests must run within one minute.
  const msToMinute = 60_000 - (Date.now() % 60_000)
  if (msToMinute < 15_000) await sleep(msToMinute + 50)
}, 60_000)
afterAll(() => stack?.stop())

const get = async (path: string, options: FetchOptions) => {
  const response = await stack.fetch(path, options)
  return { status: response.status, headers: response.headers, body: await response.text() }
}
const flood = (path: string, ip: string, times = 50) =>
  Promise.all(Array.from({ length: times }, () => get(path, { ip })))
const isShielded = ({ headers }: { headers: Headers }) => headers.get('retry-after') === '60'

test('Requests beyond the shield never reach Redis, and other clients are unaffected.', async () => {
  const [first, second] = await Promise.all([
    flood('/few', '192.0.2.1'),
    flood('/few', '192.0.2.2'),
  ])
  for (const answers of [first!, second!]) {
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    expect(answers.filter((one) => one.status === 429 && !isShielded(one))).toHaveLength(17)
    expect(answers.filter(isShielded)).toHaveLength(30)
  }
  const calls = stack.httpRequests()
  const [refused] = await flood('/few', '192.0.2.1', 5)
  expect(stack.httpRequests()).toBe(calls)
  expect(refused!.status).toBe(429)
  expect(refused!.headers.get('content-type')).toBe('application/problem+json')
  expect([...refused!.headers.keys()].filter((name) => name.startsWith('ratelimit'))).toEqual([])
  expect(JSON.parse(refused!.body)).toEqual({
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    status: 429,
    title: 'Quota exceeded',
    detail: 'Too many requests at once. Try again in 60000 ms.',
    retryAfterMs: 60_000,
  })
  expect((await get('/few', { ip: '192.0.2.3' })).status).toBe(200)
})

test('The shield does not count requests without an enforced policy.', async () => {
  const ip = '192.0.2.4'
  for (const path of ['/trial', '/free']) {
    const statuses = (await flood(path, ip)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200]))
  }
  expect((await get('/few', { ip })).status).toBe(200)
})

test('A request that the shield refuses never reaches the origin, also with check parallel.', async () => {
  const ip = '192.0.2.5'
  await flood('/many', ip, 20)
  await sleep(100)
  const before = stack.origin.requests()
  expect((await flood('/many', ip, 20)).filter(isShielded)).toHaveLength(20)
  expect(stack.origin.requests()).toBe(before)
})

test('The shield applies to requests that the decision API describes, and not to peeks and explicit keys.', async () => {
  const ip = '192.0.2.6'
  const request = { url: 'https://www.example.com/few', ip }
  const decide = async (ask: object) => {
    const response = await fetch(`${stack.url}/_sluice/v1/decide`, {
      method: 'POST',
      headers: { authorization: `Bearer ${API_TOKEN}` },
      body: JSON.stringify(ask),
    })
    return { status: response.status, body: (await response.json()) as { reason: string } }
  }
  await flood('/few', ip, 20)
  expect(await decide({ request })).toEqual({
    status: 429,
    body: { allowed: false, reason: 'shielded', retryAfterMs: 60_000, limits: [] },
  })
  expect((await decide({ request, mode: 'peek' })).body.reason).toBe('limited')
  expect((await decide({ policy: 'few', key: ip })).body.reason).toBe('limited')
})

test('Without its binding the shield admits every request, and the error is logged.', async () => {
  const worker = await startWorker(
    fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url)),
    {
      env: {
        UPSTASH_REDIS_REST_URL: stack.bridge.url,
        UPSTASH_REDIS_REST_TOKEN: stack.bridge.token,
        ORIGIN: stack.origin.url,
        CONFIG: JSON.stringify(config),
      },
    },
  )
  const statuses = []
  for (let time = 0; time < 5; time++) {
    const headers = { 'cf-connecting-ip': '192.0.2.7' }
    statuses.push((await fetch(`${worker.url}/few`, { headers })).status)
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429])
  await expect
    .poll(() => worker.logs.map((line) => JSON.parse(line)))
    .toEqual([expect.objectContaining({ event: 'shield', code: 'missing' })])
  await worker.stop()
})
