/** Which origin gets a request, what becomes of a request without one, and T10 of SECURITY.md: loops (CDN-Loop, RFC 8586). */
import { describe, expect, test } from 'vitest'
import type { Echo } from '../../../cli/dev/origin.ts'
import { gatewayOf } from '../../../tools/any-config.ts'
import { useGateway } from '../../support/gateway.ts'

const policies = [
  {
    name: 'login',
    limit: 1,
    window: '1h' as const,
    onStoreError: 'deny' as const,
    match: { path: '/login' },
  },
  { name: 'all', limit: 1000, window: '1h' as const },
]
const gateway = useGateway({ config: { policies } })

test.each([
  '/_sluice',
  '/_sluice/',
  '/_sluice/nope',
  '/_SLUICE/v1/decide',
  '/%5FSluice',
  '/%5Fsluice/x',
  '//_sluice/x',
  '/a/..%2F_sluice/x',
  '/_sluice%2Fhealth/x',
])('A request to %s never reaches the origin.', async (path) => {
  const before = gateway.origin.requests()
  const response = await gateway.fetch(path)
  expect([response.status, gateway.origin.requests()]).toEqual([404, before])
  expect(response.headers.get('content-type')).toBe('application/problem+json')
})

test('If the database refuses connections, each policy gives its fallback, no response has RateLimit, and each event is logged once.', async () => {
  const env = {
    UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1',
    UPSTASH_REDIS_REST_TOKEN: 'secret-token',
  }
  const isolate = gateway.start({ policies }, { env })
  const answer = async (path: string) => {
    const { status, headers } = await isolate.fetch(path)
    return [status, headers.has('ratelimit')]
  }
  for (let i = 0; i < 3; i++) {
    expect([await answer('/x'), await answer('/login')]).toEqual([
      [200, false],
      [503, false],
    ])
  }
  expect(isolate.events()).toEqual(['store-error', 'breaker-opened'])
  expect(isolate.logs.join()).not.toContain('secret-token')
})

test('ORIGIN of the process, which other software reads too, is not that of the Worker.', async () => {
  process.env.ORIGIN = 'http://127.0.0.1:1'
  try {
    const before = gateway.origin.requests()
    expect((await gateway.fetch('/x')).status).toBe(200)
    expect(gateway.origin.requests()).toBe(before + 1)
    const own = gatewayOf({ CONFIG: JSON.stringify({ policies }) } as never)
    const answer = await own.fetch(new Request('http://a.test/x'))
    expect(await answer.json()).toMatchObject({ title: 'No origin' })
  } finally {
    delete process.env.ORIGIN
  }
})

test('A GET or HEAD with a body in chunks, which workerd would drop, is refused with 411; a POST is forwarded.', async () => {
  const statusOf = async (method: string) => {
    const headers = { 'transfer-encoding': 'chunked' }
    return (await gateway.fetch('/x', { method, headers })).status
  }
  expect(await Promise.all(['GET', 'HEAD', 'POST'].map(statusOf))).toEqual([411, 411, 200])
})

test('Chunks that cannot be read are answered 400, and a failure of the origin is answered 502.', async () => {
  const send = async (body: ReadableStream, env = {}) => {
    const headers = { 'transfer-encoding': 'chunked' }
    const init = { method: 'POST', headers, body, duplex: 'half' }
    const isolate = gateway.start({ policies: [] }, { env })
    return (await isolate.fetch('/x', init)).status
  }
  const broken = () =>
    new ReadableStream({
      start: (stream) => stream.enqueue(new Uint8Array(9)),
      pull: (stream) => stream.error(new Error('Malformed chunk')),
    })
  const endless = new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array(9)) })
  expect(await send(broken())).toBe(400)
  expect(await send(endless, { ORIGIN: 'http://127.0.0.1:1' })).toBe(502)
})

test('A request with an invalid host is refused with 400.', async () => {
  // workerd makes such a request. The constructor of Request would throw.
  const request = { method: 'GET', url: 'http://a b/', headers: new Headers() } as Request
  const answer = async () => gatewayOf({ CONFIG: JSON.stringify({ policies }) }).fetch(request)
  const { status } = await answer().catch((error) => ({ status: `${error}` }))
  expect(status).toBe(400)
})

describe('the origin', () => {
  const run = async (config: object, ORIGIN?: string, path = 'http://127.0.0.1/x') => {
    const isolate = gateway.start({ policies: [], ...config }, { env: { ORIGIN } })
    const response = await isolate.fetch(path)
    return { status: response.status, text: await response.text(), events: isolate.events() }
  }

  test('The origin comes from the configuration, and the variable ORIGIN overrides it.', async () => {
    const { url } = gateway.origin
    expect(await run({ origin: url })).toMatchObject({ status: 200 })
    expect(await run({ origin: 'http://127.0.0.1:1' }, url)).toMatchObject({ status: 200 })
    expect(await run({ origin: `${url}/base/` })).toMatchObject({
      text: expect.stringContaining('"url": "/base/x"'),
    })
  })

  test.each([
    [{}, undefined, 'set origin in sluice.config.ts, or the variable ORIGIN'],
    [{}, 'example.com', 'the variable ORIGIN: expected a URL'],
    [{ origin: 'http://127.0.0.1:1' }, 'example.com', 'the variable ORIGIN: expected a URL'],
    [
      { origin: 'zone' },
      undefined,
      "origin 'zone' needs a route on a zone, but 127.0.0.1 is not on a zone",
    ],
  ])(
    'The configuration %j with the variable ORIGIN %j gets a 500 that explains the origin.',
    async (config, variable, message) => {
      const { status, text, events } = await run(config, variable)
      expect([status, events]).toEqual([500, ['no-origin']])
      expect(text).toContain(message)
    },
  )

  test('An isolate answers with the error of an invalid origin also after it had a valid one.', async () => {
    const isolate = gateway.start({ policies: [] })
    expect((await isolate.fetch('/')).status).toBe(200)
    const response = await isolate.fetch('/', {}, { ORIGIN: 'example.com' })
    expect([response.status, await response.json()]).toMatchObject([500, { title: 'No origin' }])
  })

  test('A request to an origin that is down gets a 502 problem.', async () => {
    expect(await run({ origin: 'http://127.0.0.1:1' })).toMatchObject({
      status: 502,
      text: expect.stringContaining('Bad Gateway'),
    })
  })

  test('An origin that starts its response too late causes a 504 problem, and a slow body does not.', async () => {
    const config = { origin: gateway.origin.url, originTimeout: '500ms' }
    expect(await run(config, undefined, '/slow/5000')).toMatchObject({
      status: 504,
      text: expect.stringContaining('Gateway Timeout'),
    })
    expect(await run(config, undefined, '/drip/900')).toMatchObject({
      status: 200,
      text: 'drip '.repeat(9),
    })
  })
})

describe('T10: loops', () => {
  const send = (field?: string, more: Record<string, string> = {}) =>
    gateway.fetch('/x', { headers: { ...(field !== undefined && { 'CDN-Loop': field }), ...more } })

  test.each([
    [undefined, 'sluice'],
    ['', 'sluice'],
    ['cloudflare; loops=1', 'cloudflare; loops=1, sluice'],
    ['sluice-other, x.sluice, "sluice"', 'sluice-other, x.sluice, "sluice", sluice'],
    ['a, sluice ; x=1, SLUICE', 'a, sluice ; x=1, SLUICE, sluice'],
  ])(
    'The CDN-Loop field "%s" reaches the origin with one more entry: "%s".',
    async (field, got) => {
      const response = await send(field)
      expect(((await response.json()) as Echo).headers['cdn-loop']).toBe(got)
    },
  )

  test('A request that has passed three Sluice Workers gets a 508, and the loop is logged once.', async () => {
    const before = gateway.origin.requests()
    for (const field of ['sluice, sluice, sluice', 'sluice,sluice;a=1 , Sluice']) {
      const response = await send(field)
      expect(response.status).toBe(508)
      expect(response.headers.get('content-type')).toBe('application/problem+json')
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(await response.json()).toMatchObject({
        title: 'Loop Detected',
        detail: expect.stringMatching(/leads back to this Worker.* set origin in sluice\.config/i),
      })
    }
    expect([gateway.origin.requests(), gateway.events()]).toEqual([before, ['loop']])
    expect((await send()).status).toBe(200)
  })

  test('A client cannot remove the CDN-Loop field by naming it in Connection.', async () => {
    const response = await send('sluice', { Connection: 'close, CDN-Loop' })
    expect(((await response.json()) as Echo).headers['cdn-loop']).toBe('sluice, sluice')
  })
})
