import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin } from '../../dev/origin.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import { startWorker } from '../../dev/worker.ts'
import { raw } from '../support/raw-http.ts'

const anyConfig = new URL('../../.cache/workers/any-config', import.meta.url).pathname
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

describe('the paths under /_sluice/', () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack({ config: { policies } })
  })
  afterAll(() => stack.stop())

  test.each([
    '/_sluice',
    '/_sluice/',
    '/_sluice/nope',
    '/%5Fsluice/x',
    '//_sluice/x',
    '/a/..%2F_sluice/x',
    '/_sluice%2Fhealth/x',
  ])('A request to %s never reaches the origin.', async (path) => {
    const response = await stack.fetch(path)
    expect(response.status).toBe(404)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
  })
})

describe('without a database', () => {
  test.each([
    [
      'it refuses connections',
      { UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1', UPSTASH_REDIS_REST_TOKEN: 'secret-token' },
    ],
    ['it is not configured', {}],
  ])(
    'Without a database (%s) each policy gives its fallback, no response has RateLimit, and each event is logged once.',
    async (_, env) => {
      const origin = await startOrigin()
      const worker = await startWorker(anyConfig, {
        env: { CONFIG: JSON.stringify({ policies }), ORIGIN: origin.url, ...env },
      })
      try {
        for (let i = 0; i < 3; i++) {
          const allowed = await fetch(`${worker.url}/x`)
          expect([allowed.status, allowed.headers.has('ratelimit')]).toEqual([200, false])
          const denied = await fetch(`${worker.url}/login`)
          expect([denied.status, denied.headers.has('ratelimit')]).toEqual([503, false])
        }
        expect(worker.logs.map((line) => JSON.parse(line).event)).toEqual([
          'store-error',
          'breaker-opened',
        ])
        expect(worker.logs.join()).not.toContain('secret-token')
      } finally {
        await worker.stop()
        await origin.close()
      }
    },
  )
})

describe('the origin', () => {
  const run = async (
    config: object,
    env: Record<string, string>,
    request: (url: string) => Promise<Response>,
    outbound?: (request: Request) => Response,
  ) => {
    const worker = await startWorker(anyConfig, {
      env: { CONFIG: JSON.stringify({ policies: [], ...config }), ...env },
      ...(outbound && { outbound }),
    })
    try {
      const response = await request(worker.url)
      return { status: response.status, text: await response.text() }
    } finally {
      await worker.stop()
    }
  }

  test('The origin comes from the configuration, and the variable ORIGIN overrides it.', async () => {
    const origin = await startOrigin()
    const get = (url: string) => fetch(`${url}/x`)
    expect(await run({ origin: origin.url }, {}, get)).toMatchObject({ status: 200 })
    expect(await run({ origin: 'http://127.0.0.1:1' }, { ORIGIN: origin.url }, get)).toMatchObject({
      status: 200,
    })
    expect(await run({ origin: `${origin.url}/base/` }, {}, get)).toMatchObject({
      text: expect.stringContaining('"url": "/base/x"'),
    })
    await origin.close()
  })

  test.each([
    [{}, {}, 'set origin in sluice.config.ts, or the variable ORIGIN'],
    [{}, { ORIGIN: 'example.com' }, 'the variable ORIGIN: expected a URL'],
    [
      { origin: 'zone' },
      {},
      "origin 'zone' needs a route on a zone, but 127.0.0.1 is not on a zone",
    ],
  ])(
    'The configuration %j with the variables %j gets a 500 that explains the origin.',
    async (config, env, message) => {
      const { status, text } = await run(config, env, (url) => fetch(url))
      expect(status).toBe(500)
      expect(text).toContain(message)
    },
  )

  test('A request to an origin that is down gets a 502 problem.', async () => {
    expect(await run({ origin: 'http://127.0.0.1:1' }, {}, (url) => fetch(url))).toMatchObject({
      status: 502,
      text: expect.stringContaining('Bad Gateway'),
    })
  })

  test('An origin that starts its response too late causes a 504 problem, and a slow body does not.', async () => {
    const origin = await startOrigin()
    const config = { origin: origin.url, originTimeout: '300ms' }
    expect(await run(config, {}, (url) => fetch(`${url}/slow/5000`))).toMatchObject({
      status: 504,
      text: expect.stringContaining('Gateway Timeout'),
    })
    const dripped = await run(config, {}, (url) => fetch(`${url}/drip/900`))
    expect(dripped).toEqual({ status: 200, text: 'drip '.repeat(9) })
    await origin.close()
  })

  test("With origin 'zone' the request is forwarded unchanged.", async () => {
    let forwarded: Request | undefined
    await run(
      { origin: 'zone' },
      {},
      async (url) => {
        const text = await raw(
          url,
          'POST //a/%2e?b= HTTP/1.1\r\nHost: www.example.com\r\nX-Forwarded-For: 192.0.2.1\r\nX-A: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi',
        )
        return new Response(text, { status: Number(text.split(' ')[1]) })
      },
      (request) => {
        forwarded = request
        return new Response('from the zone')
      },
    )
    expect([forwarded!.method, forwarded!.url, await forwarded!.text()]).toEqual([
      'POST',
      'http://www.example.com//a/?b=',
      'hi',
    ])
    expect(forwarded!.headers.get('x-a')).toBe('1')
    expect(forwarded!.headers.get('x-forwarded-for')).toBe('192.0.2.1')
    expect(forwarded!.headers.has('x-forwarded-host')).toBe(false)
  })
})

test('A Worker with an invalid configuration refuses to start and names every problem.', async () => {
  const worker = await startWorker(anyConfig, {
    env: { CONFIG: JSON.stringify({ policies: [{ name: 'a' }] }) },
  })
  const response = await fetch(worker.url)
  expect(response.status).toBe(500)
  expect(await response.text()).toMatch(
    /policies\[0\]\.limit: expected .*[\s\S]*policies\[0\]\.window: expected/,
  )
  await worker.stop()
})
