/** How policies share a request: their charges, their keys, and the Redis commands that they cost. */
import { createClient } from 'redis'
import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { commandsBetween } from '../../support/commands.ts'
import { useGateway } from '../../support/gateway.ts'

const policy = (name: string, limit: number, rest: Partial<PolicyOptions> = {}): PolicyOptions => ({
  name,
  algorithm: 'fixed-window',
  limit,
  window: '1h',
  match: { path: `/${name}` },
  ...rest,
})
const byKey = { key: 'header:x-key' } as const
const gateway = useGateway({
  config: {
    policies: [
      policy('wide', 100, { ...byKey, match: { path: '/two' } }),
      policy('narrow', 1, { ...byKey, match: { path: '/two/:any' } }),
      policy('wide-too', 100, { ...byKey, match: { path: ['/two/:any', '/wide-too'] } }),
      ...[1, 2, 3].map((n) => policy(`three-${n}`, 2, { match: { path: '/three' } })),
    ],
  },
})
const at = (path: string, key: string) => gateway.fetch(path, { headers: { 'x-key': key } })
const remaining = (response: Response) =>
  Number(/;r=(\d+)/.exec(response.headers.get('ratelimit')!)![1])

test('A request that one policy refuses is not charged to its other policies.', async () => {
  expect((await at('/two/a', 'a')).status).toBe(200)
  const refused = await at('/two/a', 'a')
  expect(refused.status).toBe(429)
  expect(await refused.json()).toMatchObject({ 'violated-policies': ['narrow'] })
  expect(remaining(await at('/wide-too', 'a'))).toBe(98)
})

describe.each([
  ['store', { time: 1 }],
  ['edge', {}],
] as const)('the clock %s', (clock, time) => {
  const policies = [1, 2, 3].map((n) => policy(`${clock}-${n}`, 2, { match: { path: '/' } }))
  const isolate = gateway.start({ clock, denialCache: false, policies })

  test(`With clock ${clock} three limits cost one HTTP request and a few Redis commands, and a refusal costs no SET.`, async () => {
    const ip = '203.0.113.200'
    await isolate.fetch('/', { ip: '203.0.113.201' }) // loads the script
    const before = gateway.httpRequests()
    const spent = (status: number) =>
      commandsBetween(gateway.redis.url, async () =>
        expect((await isolate.fetch('/', { ip })).status).toBe(status),
      )
    expect(await spent(200)).toEqual({ evalsha: 1, ...time, get: 1, set: 1 })
    expect(await spent(200)).toEqual({ evalsha: 1, ...time, get: 1, set: 1 })
    expect(await spent(429)).toEqual({ evalsha: 1, ...time, get: 1 })
    expect(gateway.httpRequests() - before).toBe(3)
  })
})

test('A request without a policy causes no call to the store.', async () => {
  const before = gateway.httpRequests()
  const response = await gateway.fetch('/elsewhere')
  expect([response.status, response.headers.has('ratelimit')]).toEqual([200, false])
  expect(gateway.httpRequests()).toBe(before)
})

test('Addresses and header values do not reach the store.', async () => {
  await gateway.fetch('/three', { ip: '198.51.100.77' })
  await at('/two', 'an-api-key')
  const client = await createClient({ url: gateway.redis.url }).connect()
  const names = await client.keys('sluice:1:*')
  const values = await client.mGet(names)
  client.destroy()
  expect(names.length).toBeGreaterThan(0)
  expect(names.filter((name) => !/^sluice:1:\{[\w-]{16}\}$/.test(name))).toEqual([])
  expect([...names, ...values].join()).not.toMatch(/198\.51|an-api-key/)
})
