import { expect, test } from 'vitest'
import { ConfigError } from '../../../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { rateLimitProxy } from '../../../../src/hosts/node/next.ts'
import { distinct, plans, shield } from '../../../support/features.ts'
import { configOf, type Options, useDatabase } from '../../../support/node-servers.ts'

useDatabase()

const policy = { name: 'per-ip', limit: 10, window: '1h', algorithm: 'fixed-window' } as const
const clientAddress = { forwardedFor: { trustedProxies: 1 } }
const work: Promise<unknown>[] = []
const event = { waitUntil: (promise: Promise<unknown>) => void work.push(promise) }
const from = (address: string) =>
  new Request('https://a.example/', { headers: { 'x-forwarded-for': address } })

test('Ten of eleven requests are passed on with the fields, and the last one gets 429.', async () => {
  const proxy = rateLimitProxy(configOf({ clientAddress, policies: [policy] }))
  for (let count = 9; count >= 0; count--) {
    const response = await proxy(from('192.0.2.1'), event)
    expect(response.headers.get('x-middleware-next')).toBe('1')
    expect(response.headers.get('ratelimit')).toMatch(new RegExp(`^"per-ip";r=${count};t=`))
  }
  const refused = await proxy(from('192.0.2.1'), event)
  expect(refused.status).toBe(429)
  expect(refused.headers.get('x-middleware-next')).toBeNull()
  expect(refused.headers.get('retry-after')).not.toBeNull()
  expect(await refused.json()).toMatchObject({ 'violated-policies': ['per-ip'] })
  const other = await proxy(from('192.0.2.2'), event)
  expect(other.status).toBe(200)
})

test('The own proxy function runs for admitted requests only, and its response gets the fields.', async () => {
  let calls = 0
  const proxy = rateLimitProxy(
    configOf({ clientAddress, policies: [{ ...policy, limit: 1 }] }),
    (_request, _event, decision) => {
      calls += 1
      expect(decision.allowed).toBe(true)
      return Response.redirect('https://a.example/login')
    },
  )
  const response = await proxy(from('192.0.2.1'), event)
  expect(response.status).toBe(302)
  expect(response.headers.get('location')).toBe('https://a.example/login')
  expect(response.headers.get('ratelimit')).toMatch(/^"per-ip";r=0/)
  expect((await proxy(from('192.0.2.1'), event)).status).toBe(429)
  expect(calls).toBe(1)
})

test('A response of the own function keeps its cookies.', async () => {
  const cookies = ['a=1; Path=/', 'b=2; Path=/']
  const proxy = rateLimitProxy(configOf({ clientAddress, policies: [policy] }), () => {
    const response = new Response('ok', { status: 201 })
    for (const cookie of cookies) response.headers.append('set-cookie', cookie)
    return response
  })
  const { status, headers } = await proxy(from('192.0.2.1'), event)
  expect([status, headers.getSetCookie()]).toEqual([201, cookies])
  expect(headers.get('ratelimit')).not.toBeNull()
})

test('The work after a response is handed to waitUntil.', async () => {
  work.length = 0
  const proxy = rateLimitProxy(configOf({ clientAddress, policies: [policy] }))
  // The first request of a millisecond is sent at once, and the others join a batch.
  await Promise.all(Array.from({ length: 50 }, () => proxy(from('192.0.2.1'), event)))
  expect(work.length).toBeGreaterThan(0)
  await Promise.all(work)
})

test('With the address of the connection, a request fails with a ConfigError that names the remedy.', async () => {
  const proxy = rateLimitProxy(configOf({ clientAddress: 'socket', policies: [policy] }))
  const failed = proxy(from('192.0.2.1'), event)
  await expect(failed).rejects.toThrow(ConfigError)
  await expect(failed).rejects.toThrow('a number of trustedProxies')
})

test.each<[path: string, Partial<PolicyOptions>]>([
  ['policies[0].countOnly', { countOnly: '4xx' }],
  ['policies[0].cost.response', { cost: { response: 'x-price' } }],
  ['policies[0].cost.usage', { cost: { usage: 'usage.total_tokens', max: 9 } }],
  ['policies[0].algorithm', { algorithm: 'concurrency' }],
])('A configuration with %s is a ConfigError at creation.', (path, more) => {
  const create = () =>
    rateLimitProxy(configOf({ policies: [{ ...policy, ...more }], use: [bodies()] }))
  expect(create).toThrow(ConfigError)
  expect(create).toThrow(path)
})

const HIDDEN = [
  'RSC',
  'Next-Router-Prefetch',
  'next_router_segment_prefetch',
  'next-router-state-tree',
  'next-hmr-refresh',
  'x-middleware-skip',
]
const ways: [path: string, (source: 'header' | 'query', name: string) => Partial<Options>][] = [
  ['policies[0].match', (source, name) => match({ [source]: { [name]: true } })],
  ['policies[0].match.not', (source, name) => match({ not: { [source]: { [name]: '1' } } })],
  [
    'policies[0].match.not[1].not',
    (source, name) => match({ not: [{ path: '/a' }, { not: { [source]: { [name]: true } } }] }),
  ],
  ['allow[0]', (source, name) => ({ allow: [{ path: '/a', [source]: { [name]: true } }] })],
  ['deny', (source, name) => ({ deny: { [source]: { [name]: true } } })],
  ['policies[0].key[1]', (source, name) => own({ key: ['ip', `${source}:${name}`] })],
  [
    'policies[0].onMissingKey.key',
    (source, name) => own({ key: 'cookie:a', onMissingKey: { key: `${source}:${name}` } }),
  ],
  ['policies[0].plan', (source, name) => own({ plan: `${source}:${name}`, limits: { a: 1 } })],
  [
    'policies[0].distinct',
    (source, name) => own({ algorithm: undefined, distinct: `${source}:${name}` }),
  ],
  [
    'policies[0].cost[0]',
    (source, name) => own({ cost: [{ [source]: { [name]: true }, cost: 0 }] }),
  ],
  [
    'policies[0].cost.rules[0]',
    (source, name) => own({ cost: { rules: [{ [source]: { [name]: true }, cost: 0 }] } }),
  ],
  [
    'policies[0].reserve[0]',
    (source, name) => own({ reserve: [{ match: { [source]: { [name]: true } }, share: 0.5 }] }),
  ],
  [
    'apiKeys.from',
    (source, name) => ({ ...own({ key: 'api-key' }), apiKeys: { from: `${source}:${name}` } }),
  ],
  [
    'shield.key',
    (source, name) => ({
      shield: { binding: 'RL', limit: 9, period: '10s', key: `${source}:${name}` },
    }),
  ],
]
const own = (more: Partial<PolicyOptions>) => ({ policies: [{ ...policy, ...more }] })
const match = (condition: PolicyOptions['match']) => own({ match: condition })
const create = (more: Partial<Options>) => () =>
  rateLimitProxy(
    configOf({ clientAddress, policies: [policy], use: [plans(), distinct(), shield()], ...more }),
  )

test.each(ways)(
  'At %s, a field that Next.js hides from the proxy is a ConfigError at creation, and other fields are not.',
  (path, options) => {
    for (const name of HIDDEN) expect(create(options('header', name))).toThrow(path)
    expect(create(options('query', '_rsc'))).toThrow(path)
    for (const name of ['next-action', 'next-url', 'x-nextjs-data'])
      create(options('header', name))()
    create(options('query', 'rsc'))()
  },
)

test('The address and the cost of a trusted proxy have no field that Next.js hides.', () => {
  const address = { header: 'x-matched-path', trustedProxies: 1 }
  expect(create({ clientAddress: address })).toThrow('clientAddress.header')
  expect(create(own({ cost: { header: 'RSC' } }))).toThrow('policies[0].cost.header')
})

test('The error names the field, and each such field.', () => {
  const both = { header: { rsc: true }, query: { _rsc: true } } as const
  expect(create(match(both))).toThrow(
    'policies[0].match.header.rsc: expected another field, because Next.js hides this one from the proxy, got true',
  )
  expect(create(match(both))).toThrow('policies[0].match.query._rsc')
})
