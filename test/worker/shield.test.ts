/** The shield through the front door, with the binding as Miniflare has it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FetchOptions, type Stack, startStack } from '../../dev/stack.ts'
import { startWorker } from '../../dev/worker.ts'
import type { ConfigOptions } from '../../src/config/options.ts'

const API_TOKEN = 'a-api-token-for-tests'
const config: ConfigOptions = {
  deadline: '10s',
  denialCache: false, // what the shield lets through is to be seen at Redis
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
  // It counts by the minute of the clock: no test is to lie across two.
  const left = 60_000 - (Date.now() % 60_000)
  if (left < 15_000) await sleep(left + 50)
}, 60_000)
afterAll(() => stack?.stop())

const get = async (path: string, options: FetchOptions) => {
  const response = await stack.fetch(path, options)
  return { status: response.status, headers: response.headers, body: await response.text() }
}
const flood = (path: string, ip: string, times = 50) =>
  Promise.all(Array.from({ length: times }, () => get(path, { ip })))
const isShielded = ({ headers }: { headers: Headers }) => headers.get('retry-after') === '60'

test('what is beyond it never reaches Redis, however many come at once; others are not touched', async () => {
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
  const [told] = await flood('/few', '192.0.2.1', 5)
  expect(stack.httpRequests()).toBe(calls)
  expect(told!.status).toBe(429)
  expect(told!.headers.get('content-type')).toBe('application/problem+json')
  expect([...told!.headers.keys()].filter((name) => name.startsWith('ratelimit'))).toEqual([])
  expect(JSON.parse(told!.body)).toEqual({
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    status: 429,
    title: 'Quota exceeded',
    detail: 'Too many requests at once. Try again in 60000 ms.',
    retryAfterMs: 60_000,
  })
  expect((await get('/few', { ip: '192.0.2.3' })).status).toBe(200)
})

test('requests that nothing enforced meets are not counted by it', async () => {
  const ip = '192.0.2.4'
  for (const path of ['/trial', '/free']) {
    const statuses = (await flood(path, ip)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200]))
  }
  expect((await get('/few', { ip })).status).toBe(200)
})

test('the origin hears nothing of what it refuses, though it may be asked early', async () => {
  const ip = '192.0.2.5'
  await flood('/many', ip, 20)
  await sleep(100)
  const before = stack.origin.requests()
  expect((await flood('/many', ip, 20)).filter(isShielded)).toHaveLength(20)
  expect(stack.origin.requests()).toBe(before)
})

test('it speaks in the decision API too, of requests that a caller tells of', async () => {
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

test('without its binding all goes on, and the log says so', async () => {
  const worker = await startWorker(
    fileURLToPath(new URL('../../dist/any-config', import.meta.url)),
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
