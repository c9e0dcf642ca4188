/** What the origin receives of a request, and the client of a response. */
import { expect, test } from 'vitest'
import type { Echo } from '../../../cli/dev/origin.ts'
import type { FetchOptions } from '../../../tools/stack.ts'
import { useGateway } from '../../support/gateway.ts'

const gateway = useGateway({
  bodies: {},
  config: {
    policies: [
      { name: 'all', limit: 10_000, window: '1h' },
      {
        name: 'tokens',
        limit: 10_000,
        window: '1h',
        match: { path: '/read' },
        cost: { usage: 'usage.total_tokens', otherwise: 1, max: 10 },
      },
    ],
  },
})
const echo = async (url: string, options: FetchOptions = {}) =>
  (await (await gateway.fetch(url, options)).json()) as Echo

test('The origin gets its own Host, and the host and address of the client in X-Forwarded fields.', async () => {
  const { headers } = await echo('https://client.example/', {
    headers: {
      'X-Forwarded-For': '6.6.6.6',
      'X-Forwarded-Host': 'evil',
      'X-Forwarded-Proto': 'ftp',
      Forwarded: 'for=6.6.6.6',
    },
  })
  expect(headers).toMatchObject({
    host: new URL(gateway.origin.url).host,
    'x-forwarded-host': 'client.example',
    'x-forwarded-proto': 'https',
    'x-forwarded-for': '203.0.113.7',
  })
  expect(headers).not.toHaveProperty('forwarded')
})

test('Hop-by-hop fields do not reach the origin.', async () => {
  const { headers } = await echo('/', {
    headers: {
      Connection: 'close, X-Private',
      'X-Private': '1',
      'Keep-Alive': 'timeout=5',
      TE: 'trailers',
      'Proxy-Authorization': 'Basic eA==',
      'X-Public': '1',
    },
  })
  expect(headers['x-public']).toBe('1')
  for (const name of ['x-private', 'te', 'proxy-authorization'])
    expect(headers).not.toHaveProperty(name)
  expect(headers['keep-alive']).not.toBe('timeout=5')
})

test('Hop-by-hop fields of the origin do not reach the client.', async () => {
  const names = ['connection', 'keep-alive']
  const sent = await fetch(gateway.origin.url)
  const received = await gateway.fetch('/')
  expect(names.map((name) => sent.headers.has(name))).toEqual([true, true])
  expect(names.map((name) => received.headers.has(name))).toEqual([false, false])
})

test('Fields that claim another path, method, client or host do not reach the origin, however they are spelled.', async () => {
  const names = [
    ...['X-Original-URL', 'X-Rewrite-URL', 'X-HTTP-Method-Override', 'X-Real-IP'],
    ...['True-Client-IP', 'X-Forwarded-Prefix', 'CF-Connecting-IPv6', 'X-Envoy-Original-Path'],
  ]
  const spelled = [...names, ...names.map((name) => name.replaceAll('-', '_')), 'CF_Ray', 'X_Other']
  const { headers } = await echo('/', {
    headers: Object.fromEntries(spelled.map((name) => [name, '/login'])),
  })
  expect(spelled.filter((name) => name.toLowerCase() in headers)).toEqual(['X_Other'])
})

test('The origin is asked for a body without compression only if a policy reads it.', async () => {
  const headers = { 'Accept-Encoding': 'gzip' }
  expect((await echo('/read', { headers })).headers['accept-encoding']).toBe('identity')
  expect((await echo('/', { headers })).headers['accept-encoding']).toBe('gzip')
})

test.each([301, 302, 303, 307, 308])(
  'A %d of the origin is unchanged, with its location and cookies.',
  async (status) => {
    const response = await gateway.fetch(`/redirect/${status}`)
    expect(response.status).toBe(status)
    expect(response.headers.get('location')).toBe('/elsewhere')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  },
)

test.each([204, 304, 404, 418, 500, 503])(
  'A %d of the origin reaches the client.',
  async (status) => {
    expect((await gateway.fetch(`/status/${status}`)).status).toBe(status)
  },
)

test('An origin that resets the connection causes a 502 problem, and the request remains charged.', async () => {
  const remaining = async (path: string) => {
    const { headers } = await gateway.fetch(path, { ip: '203.0.113.99' })
    return Number(/"all";r=(\d+)/.exec(headers.get('ratelimit')!)![1])
  }
  const response = await gateway.fetch('/reset/any')
  expect(response.status).toBe(502)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(await response.json()).toMatchObject({ title: 'Bad Gateway', status: 502 })
  const before = await remaining('/')
  expect(await remaining('/reset/any')).toBe(before - 1)
  expect(await remaining('/')).toBe(before - 2)
})
