import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Stack, startStack } from '../../dev/stack.ts'
import { commandsBetween } from '../support/commands.ts'

let stack: Stack
const policy = (name: string, algorithm: 'fixed-window' | 'sliding-window') => ({
  name,
  algorithm,
  limit: 50,
  window: '1h' as const,
  key: 'header:x-key' as const,
  match: { path: `/${algorithm}` },
})

beforeAll(async () => {
  stack = await startStack({
    config: {
      policies: [
        policy('fixed', 'fixed-window'),
        policy('sliding', 'sliding-window'),
        {
          name: 'wide',
          algorithm: 'fixed-window',
          limit: 100,
          window: '1h',
          key: 'header:x-key',
          match: { path: '/two' },
        },
        {
          name: 'narrow',
          algorithm: 'fixed-window',
          limit: 1,
          window: '1h',
          key: 'header:x-key',
          match: { path: '/two/:any' },
        },
        {
          name: 'wide-too',
          algorithm: 'fixed-window',
          limit: 100,
          window: '1h',
          key: 'header:x-key',
          match: { path: ['/two/:any', '/wide-too'] },
        },
        {
          name: 'ghost',
          algorithm: 'fixed-window',
          limit: 1,
          window: '1h',
          mode: 'shadow',
          match: { path: '/shadow' },
        },
        {
          name: 'real',
          algorithm: 'fixed-window',
          limit: 3,
          window: '1h',
          match: { path: '/shadow' },
        },
        ...[1, 2, 3].map((n) => ({
          name: `three-${n}`,
          limit: 2,
          window: '1h' as const,
          match: { path: '/three' },
        })),
        { name: 'never', limit: 2, window: '1h', cost: 3, match: { path: '/never' } },
        {
          name: 'missing',
          limit: 2,
          window: '1h',
          key: 'header:x-absent',
          match: { path: '/missing' },
        },
      ],
    },
  })
})
afterAll(() => stack.stop())

let keys = 0
const newKey = () => `key-${process.pid}-${Date.now()}-${++keys}`
const at = (path: string, key: string) => stack.fetch(path, { headers: { 'x-key': key } })
const remaining = (response: Response) =>
  Number(/;r=(\d+)/.exec(response.headers.get('ratelimit')!)![1])

describe.each(['fixed-window', 'sliding-window'])('%s', (algorithm) => {
  test(`With ${algorithm} exactly the limit of 200 concurrent requests is admitted, ten times in a row.`, async () => {
    for (let round = 0; round < 10; round++) {
      const key = newKey()
      const statuses = await Promise.all(
        Array.from({ length: 200 }, async () => {
          const response = await at(`/${algorithm}`, key)
          await response.arrayBuffer()
          return response.status
        }),
      )
      expect(statuses.filter((status) => status === 200)).toHaveLength(50)
      expect(statuses.filter((status) => status === 429)).toHaveLength(150)
    }
  })
})

test('A request that one policy refuses is not charged to its other policies.', async () => {
  const key = newKey()
  expect((await at('/two/a', key)).status).toBe(200)
  const refused = await at('/two/a', key)
  expect(refused.status).toBe(429)
  expect(await refused.json()).toMatchObject({ 'violated-policies': ['narrow'] })
  expect(remaining(await at('/wide-too', key))).toBe(98)
})

test('A shadow policy never refuses, is invisible to the client, and does not change the enforced policy.', async () => {
  const ip = '198.51.100.1'
  for (const expected of [2, 1, 0]) {
    const response = await stack.fetch('/shadow', { ip })
    expect([response.status, remaining(response)]).toEqual([200, expected])
    expect(response.headers.get('ratelimit-policy')).toBe('"real";q=3;w=3600')
  }
  expect((await stack.fetch('/shadow', { ip })).status).toBe(429)
})

test('All requests without the key of a policy share one quota.', async () => {
  const statuses = []
  for (const ip of ['198.51.100.2', '198.51.100.3', '198.51.100.4']) {
    statuses.push((await stack.fetch('/missing', { ip })).status)
  }
  expect(statuses).toEqual([200, 200, 429])
})

test('A request whose cost exceeds the limit is refused without Retry-After.', async () => {
  const response = await stack.fetch('/never')
  expect(response.status).toBe(429)
  expect(response.headers.has('retry-after')).toBe(false)
  expect(await response.json()).toMatchObject({ retryAfterMs: null })
})

test('A request with three limits is one HTTP request with EVALSHA, TIME, GET and SET, and without SET if refused.', async () => {
  const ip = '198.51.100.5'
  await (await stack.fetch('/three', { ip })).arrayBuffer() // loads the script
  const before = stack.httpRequests()
  const pass = await commandsBetween(stack.redis.url, async () =>
    expect((await stack.fetch('/three', { ip })).status).toBe(200),
  )
  expect(pass).toEqual({ evalsha: 1, time: 1, get: 1, set: 1 })
  const refuse = await commandsBetween(stack.redis.url, async () =>
    expect((await stack.fetch('/three', { ip })).status).toBe(429),
  )
  expect(refuse).toEqual({ evalsha: 1, time: 1, get: 1 })
  expect(stack.httpRequests() - before).toBe(2)
})

test('A client that waits exactly retryAfterMs passes.', async () => {
  const own = await startStack({
    config: { policies: [{ name: 'a', algorithm: 'sliding-window', limit: 3, window: '700ms' }] },
  })
  try {
    for (let round = 0; round < 5; round++) {
      let response = await own.fetch('/')
      while (response.status === 200) response = await own.fetch('/')
      const { retryAfterMs } = (await response.json()) as { retryAfterMs: number }
      await new Promise((resolve) => setTimeout(resolve, retryAfterMs))
      expect((await own.fetch('/')).status).toBe(200)
    }
  } finally {
    await own.stop()
  }
})

test('A request without a policy causes no call to the store.', async () => {
  const before = stack.httpRequests()
  const response = await stack.fetch('/elsewhere')
  expect([response.status, response.headers.has('ratelimit')]).toEqual([200, false])
  expect(stack.httpRequests()).toBe(before)
})

test('Addresses and header values do not reach the store.', async () => {
  const { createClient } = await import('redis')
  await stack.fetch('/three', { ip: '198.51.100.77' })
  await at('/fixed-window', 'an-api-key')
  const client = await createClient({ url: stack.redis.url }).connect()
  const names = await client.keys('sluice:1:*')
  const values = await client.mGet(names)
  client.destroy()
  expect(names.length).toBeGreaterThan(0)
  expect(names.filter((name) => !/^sluice:1:\{[\w-]{16}\}$/.test(name))).toEqual([])
  expect([...names, ...values].join()).not.toMatch(/198\.51|an-api-key/)
})
