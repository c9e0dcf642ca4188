/** The threats of SECURITY.md, by their numbers. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { Stack } from '../../tools/stack.ts'
import { type RunningWorker, startWorker } from '../../tools/worker.ts'
import { raw, request } from '../support/raw-http.ts'
import { startStack } from '../support/stack.ts'

const config: ConfigOptions = {
  deadline: '10s',
  policies: [
    { name: 'login', limit: 1, window: '1h', match: { path: '/login' } },
    { name: 'shop', limit: 1, window: '1h', match: { host: 'shop.example.com' } },
    { name: 'by-key', limit: 2, window: '1h', key: 'header:x-key', match: { path: '/keyed' } },
  ],
}
let stack: Stack
/** The same Worker with origin 'zone'. Its origin echoes the header fields. */
let zone: RunningWorker
/** Another server on this machine, which clients must not reach through the Worker. */
let inner: { server: Server; port: number; received: string[] }

beforeAll(async () => {
  const received: string[] = []
  const server = createServer((incoming, response) => {
    received.push(incoming.url!)
    response.end('inner secret')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  inner = { server, port: (server.address() as AddressInfo).port, received }
  stack = await startStack({ config })
  const { bridge } = stack
  zone = await startWorker(new URL('../../.cache/workers/any-config', import.meta.url).pathname, {
    env: {
      UPSTASH_REDIS_REST_URL: bridge.url,
      UPSTASH_REDIS_REST_TOKEN: bridge.token,
      ORIGIN: 'zone',
      CONFIG: JSON.stringify(config),
    },
    async outbound(sent) {
      if (!sent.url.startsWith(bridge.url)) return Response.json(Object.fromEntries(sent.headers))
      const { method, headers } = sent
      const reply = await fetch(sent.url, { method, headers, body: await sent.text() })
      return new Response(await reply.text(), { status: reply.status })
    },
  })
})
afterAll(async () => {
  inner.server.close()
  await zone?.stop()
  await stack?.stop()
})

let clients = 0
const newIp = () => `198.51.100.${++clients}`
const direct = (bytes: string) => raw(stack.worker.directUrl, bytes)
const statusOf = (answer: string) => Number(answer.split(' ')[1])

describe('T1: another origin', () => {
  test('T1: A client cannot reach another origin with its target or its Host.', async () => {
    const other = `127.0.0.1:${inner.port}`
    for (const bytes of [
      request(`http://${other}/secret`, 'Host: a'),
      request(`//${other}/secret`, 'Host: a'),
      request(`/x@${other}/secret`, 'Host: a'),
      request('/secret', `Host: ${other}`),
      request(`/ab:${inner.port}/secret`, 'Host: 0x7f.1'),
      request(`/ab@localhost:${inner.port}/secret`, 'Host: client.example:80'),
      request(`/@${other}/secret`, 'Host: %61.example'),
      request('/secret', 'Host: a', `X-Forwarded-Host: ${other}`),
    ]) {
      for (const url of [stack.worker.directUrl, stack.url]) {
        expect(await raw(url, bytes)).not.toContain('inner secret')
      }
    }
    expect(inner.received).toEqual([])
  })

  test('T1: A request with an unusual Host reaches the configured origin or is refused by the runtime.', async () => {
    for (const host of [
      'client.example:80',
      'example.com:',
      '[::1]:80',
      'EXAMPLE.com.',
      '0x7f.1',
    ]) {
      expect([200, 400]).toContain(statusOf(await direct(request('/x', `Host: ${host}`))))
    }
  })
})

describe('T2: another client', () => {
  test('T2: Only CF-Connecting-IP sets the address of a client.', async () => {
    const ip = newIp()
    const login = (n: number) =>
      stack.fetch('/login', {
        ip,
        headers: {
          'X-Forwarded-For': `6.6.6.${n}`,
          'X-Real-IP': `6.6.6.${n}`,
          'True-Client-IP': `6.6.6.${n}`,
          Forwarded: `for=6.6.6.${n}`,
        },
      })
    expect((await login(1)).status).toBe(200)
    expect((await login(2)).status).toBe(429)
  })

  test('T2: An IPv6 client has one quota for its whole /64 network.', async () => {
    expect((await stack.fetch('/login', { ip: '2001:db8:7:7::1' })).status).toBe(200)
    expect((await stack.fetch('/login', { ip: '2001:db8:7:7:ffff::2' })).status).toBe(429)
    expect((await stack.fetch('/login', { ip: '2001:db8:7:8::1' })).status).toBe(200)
  })

  test('T2: All clients without the header of a key share one quota.', async () => {
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await stack.fetch('/keyed', { ip: newIp() })).status)
    expect(statuses).toEqual([200, 200, 429])
  })
})

describe.each([
  ['a URL', () => stack.worker],
  ['the zone', () => zone],
])('T3: another spelling, with %s as the origin', (origin, worker) => {
  const direct = (bytes: string) => raw(worker().directUrl, bytes)

  test('T3: Each of these targets is limited like /login.', async () => {
    for (const path of [
      ...['/login/', '//login', '/./login', '/x/../login', '/%6cogin', '/%6Cogin', '/LOGIN'],
      ...['/login;a=1', '/%ff%2f..%2flogin', '/x/..%2flogin', '/\\login', '/login?x=/other'],
      ...['/login#', '/%2e/login', '/login%2f'],
    ]) {
      const line = `CF-Connecting-IP: ${newIp()}`
      const statuses = []
      for (const target of ['/login', path])
        statuses.push(statusOf(await direct(request(target, 'Host: a', line))))
      expect([path, ...statuses]).toEqual([path, 200, 429])
    }
  })

  test('T3: All spellings of a host share one quota.', async () => {
    const line = `CF-Connecting-IP: ${newIp()}`
    expect(statusOf(await direct(request('/', 'Host: shop.example.com', line)))).toBe(200)
    for (const host of ['SHOP.example.com', 'shop.example.com.', 'shop.example.com:8080']) {
      expect(statusOf(await direct(request('/', `Host: ${host}`, line)))).toBe(429)
    }
  })

  test('T3: HEAD is limited like GET.', async () => {
    const bytes = request('/login', 'Host: a', `CF-Connecting-IP: ${newIp()}`)
    expect(statusOf(await direct(bytes))).toBe(200)
    expect(statusOf(await direct(bytes.replace('GET', 'HEAD')))).toBe(429)
  })

  /** Sends these fields. Returns those that reach the origin. */
  async function passed(names: string[]): Promise<string[]> {
    const lines = names.map((name) => `${name}: 6.6.6.6`)
    const answer = await direct(request('/other', 'Host: a', ...lines))
    expect(statusOf(answer)).toBe(200)
    return names.filter((name) => answer.toLowerCase().includes(`"${name.toLowerCase()}"`))
  }
  const withUnderscores = (names: string[]) =>
    names.flatMap((name) => [name.replaceAll('-', '_'), name.replace('-', '_')])

  test('T3: Fields that claim another path or method do not reach the origin.', async () => {
    const names = [
      'X-Original-URL',
      'X-Rewrite-URL',
      'X-HTTP-Method',
      'X-HTTP-Method-Override',
      'X-Method-Override',
    ]
    const others = names.flatMap((name) => [name.replaceAll('-', '.'), name.replace('-', '~')])
    const own = ['Sluice-Shadow', 'Sluice_Shadow', 'Sluice.Shadow']
    const claims = [...names, ...withUnderscores(names), ...others, ...own]
    expect(await passed([...claims, 'X-Other', 'X.Other'])).toEqual(['X-Other', 'X.Other'])
  })

  test('T3: Fields with "_" that claim another client, host or path do not reach the origin.', async () => {
    const names = withUnderscores([
      'X-Forwarded-For',
      'X-Forwarded-Host',
      'X-Forwarded-Proto',
      'X-Forwarded-Prefix',
      'X-Real-IP',
      'True-Client-IP',
      'CF-Connecting-IP',
      'CF-IPCountry',
    ])
    const withDots = names.map((name) => name.replaceAll('_', '.'))
    expect(await passed([...names, ...withDots, 'X_Other'])).toEqual(['X_Other'])
  })

  test('T3: Fields that Cloudflare or a rule of the zone sets only reach the origin of the zone.', async () => {
    const names = [
      'Forwarded',
      'X-Forwarded-Port',
      'X-Forwarded-Prefix',
      'X-Real-IP',
      'X-Client-IP',
      'X-Cluster-Client-IP',
      'X-Original-Host',
      'X-Envoy-Original-Path',
      'X-Envoy-External-Address',
      'True-Client-IP',
      'Fastly-Client-IP',
      'CF-Connecting-IPv6',
      'CF-Pseudo-IPv4',
    ]
    expect(await passed(names)).toEqual(origin === 'the zone' ? names : [])
  })
})

test('T4: No spelling of a reserved path reaches the origin.', async () => {
  for (const path of [
    ...['/_sluice/x', '//_sluice/x', '/%5fsluice/x', '/a/../_sluice/x', '/_sluice%2fx'],
    ...['/_sluice;a/x', '/\\_sluice\\x', '/_SLUICE/v1/decide', '/%5FSluice', '/_Sluice/health'],
  ]) {
    expect([path, statusOf(await direct(request(path, 'Host: a')))]).toEqual([path, 404])
  }
})

describe('T5: request smuggling', () => {
  test.each([
    [
      'Content-Length and Transfer-Encoding',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    ],
    [
      'two Content-Length fields',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 30\r\nConnection: close\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n',
    ],
    [
      'an unknown Transfer-Encoding',
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\nConnection: close\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n',
    ],
    [
      'a folded line',
      'GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n GET /smuggled HTTP/1.1\r\nConnection: close\r\n\r\n',
    ],
    [
      'an encoded newline in the target',
      request('/%0d%0aGET%20/smuggled%20HTTP/1.1%0d%0a', 'Host: a'),
    ],
  ])('T5: A request with %s does not reach the origin as two requests.', async (_, bytes) => {
    // The echo of a second request would contain this url. Bodies and paths may contain the text in other forms.
    expect(await direct(bytes)).not.toMatch(/"url": "\/smuggled"/)
  })

  test('T5: Invalid bytes in a header cannot add a header to the response.', async () => {
    const answer = await direct(
      request('/keyed', 'Host: a', 'X-Key: a\u00ffb\u0080', 'X-Evil: a\rSet-Cookie: x=1'),
    )
    expect(answer).not.toMatch(/^set-cookie/im)
  })
})

test('T6: A refusal has Cache-Control: no-store.', async () => {
  const ip = newIp()
  await stack.fetch('/login', { ip })
  const refused = await stack.fetch('/login', { ip })
  expect([refused.status, refused.headers.get('cache-control')]).toEqual([429, 'no-store'])
})

test('T7: A client cannot choose the name of a key in Redis, and a very long value of a key passes.', async () => {
  const send = (key: string) => stack.fetch('/keyed', { headers: { 'x-key': key } })
  expect((await send('k'.repeat(8000))).status).toBe(200)
  await send('*}:log:{ evil')
  const client = await createClient({ url: stack.redis.url }).connect()
  const names = await client.keys('*')
  client.destroy()
  expect(names.filter((name) => !/^sluice:1:\{[\w-]{16}\}$/.test(name))).toEqual([])
})

test('T8: The log contains nothing of a request.', async () => {
  const client = await createClient({ url: stack.redis.url }).connect()
  await client.sendCommand(['SCRIPT', 'FLUSH']) // logs an event
  client.destroy()
  await stack.fetch('/keyed', { ip: newIp(), headers: { 'x-key': 'evil' } })
  await vi.waitFor(() => expect(stack.worker.logs).not.toEqual([]), { timeout: 10_000 })
  expect(stack.worker.logs.join('\n')).not.toMatch(/198\.51|evil|2001:db8/)
})
