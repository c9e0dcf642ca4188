/** The shield through the whole stack, with the rate-limit binding of Miniflare. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { FetchOptions, Stack } from '../../tools/stack.ts'
import { startStack } from '../support/stack.ts'
import { enoughOf } from '../support/windows.ts'

const config: ConfigOptions = {
  deadline: '10s',
  denialCache: false, // so that every request that the shield admits reaches Redis
  shield: { binding: 'SHIELD', limit: 20, period: '60s' },
  policies: [
    { name: 'few', limit: 3, window: '1h', match: { path: '/few' } },
    { name: 'many', limit: 9, window: '1h', match: { path: '/many' } },
  ],
}
const ratelimits = { SHIELD: { limit: 20, period: 60 as const } }

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ config, ratelimits })
  await get('/many', { ip: newIp() }) // the first call of the binding is slow
})
// The binding counts by the minute of the clock, and a flood must end within one minute.
beforeEach(() => enoughOf(60_000, 15_000))
afterAll(() => stack?.stop())

let clients = 0
const newIp = () => `192.0.2.${++clients}`
const get = async (path: string, options: FetchOptions) => {
  const response = await stack.fetch(path, options)
  return { status: response.status, headers: response.headers, body: await response.text() }
}
const flood = (path: string, ip: string, times = 50) =>
  Promise.all(Array.from({ length: times }, () => get(path, { ip })))
const isShielded = ({ headers }: { headers: Headers }) => headers.get('retry-after') === '60'
/** Repeats a flood and its checks. After a slow call of the binding the isolate leaves out the shield for a second. */
const shielded = (attempt: () => Promise<void>) =>
  vi.waitFor(attempt, { timeout: 25_000, interval: 1_100 })

test('Requests beyond the shield never reach Redis, and other clients are unaffected.', () =>
  shielded(async () => {
    const ips = [newIp(), newIp()]
    for (const answers of await Promise.all(ips.map((ip) => flood('/few', ip)))) {
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
      expect(answers.filter((one) => one.status === 429 && !isShielded(one))).toHaveLength(17)
      expect(answers.filter(isShielded)).toHaveLength(30)
    }
    const calls = stack.httpRequests()
    const [refused] = await flood('/few', ips[0]!, 5)
    expect(stack.httpRequests()).toBe(calls)
    expect(refused!.status).toBe(429)
    expect(refused!.headers.get('content-type')).toBe('application/problem+json')
    expect([...refused!.headers.keys()].filter((name) => name.startsWith('ratelimit'))).toEqual([])
    expect(JSON.parse(refused!.body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      status: 429,
      title: 'Quota exceeded',
      detail: 'Too many requests at once. Try again in 60 seconds.',
      retryAfterMs: 60_000,
    })
    expect((await get('/few', { ip: newIp() })).status).toBe(200)
  }))

test('A request that the shield refuses never reaches the origin.', () =>
  shielded(async () => {
    const ip = newIp()
    await flood('/many', ip, 20)
    await sleep(100)
    const before = stack.origin.requests()
    expect((await flood('/many', ip, 20)).filter(isShielded)).toHaveLength(20)
    expect(stack.origin.requests()).toBe(before)
  }))
