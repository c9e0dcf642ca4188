/** What every server does: Express, Fastify, plain `http`, and Hono on Node. */

import { Agent, createServer, request as send } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { proxies, refusals } from '../../../support/features.ts'
import {
  configOf,
  heldRequests,
  listen,
  type Options,
  release,
  servers,
  useDatabase,
} from '../../../support/node-servers.ts'
import { raw, request } from '../../../support/raw-http.ts'

useDatabase()

const policy = { name: 'per-ip', limit: 10, window: '1h', algorithm: 'fixed-window' } as const
const slots = { name: 'slow', algorithm: 'concurrency', limit: 1, window: '1h' } as const
const statusOf = async (url: string, init?: RequestInit) => {
  const response = await fetch(url, init)
  await response.arrayBuffer()
  return response.status
}
const via = (forwardedFor: string) => ({ headers: { 'x-forwarded-for': forwardedFor } })

/** Waits up to 5 s for a request with this status. A refund arrives shortly after its response. */
async function soon(url: string, expected = 200): Promise<number> {
  for (let attempt = 0; ; attempt++) {
    const status = await statusOf(url)
    if (status === expected || attempt === 100) return status
    await sleep(50)
  }
}

/** Sends a request on a kept-alive connection. */
const sendOn = (agent: Agent, url: string, method: string, body?: string) =>
  new Promise<{ status: number; reused: boolean }>((resolve, reject) => {
    const sent = send(url, { agent, method }, (response) => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode!, reused: sent.reusedSocket }))
    })
    sent.on('error', reject)
    sent.end(body)
  })

describe.each(servers)('a limiter in %s', (_name, start) => {
  test('Ten of eleven requests pass, and the last one gets 429 with its fields and a problem document.', async () => {
    const url = await start(configOf({ policies: [policy] }))
    const first = await fetch(url)
    expect(await first.text()).toBe('ok')
    expect(first.headers.get('ratelimit-policy')).toBe('"per-ip";q=10;w=3600')
    expect(first.headers.get('ratelimit')).toMatch(/^"per-ip";r=9;t=\d+$/)
    for (let count = 2; count <= 10; count++) expect(await statusOf(url)).toBe(200)
    const last = await fetch(url)
    expect(last.status).toBe(429)
    expect(last.headers.get('ratelimit')).toMatch(/^"per-ip";r=0;t=\d+$/)
    expect(last.headers.get('ratelimit-policy')).toBe('"per-ip";q=10;w=3600')
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(last.headers.get('cache-control')).toBe('no-store')
    expect(last.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(await last.json()).toMatchObject({ status: 429, 'violated-policies': ['per-ip'] })
  })

  test('An own refusal has its status, body and header fields, and a browser gets the page.', async () => {
    const refusal = {
      status: 420,
      body: { text: 'wait {{retryAfter}} s' },
      headers: { 'x-policy': '{{policy}}' },
    }
    const policies = [
      { ...policy, limit: 1, match: { path: '/own' }, refusal },
      { ...policy, name: 'page', limit: 1, match: { path: '/page' } },
    ]
    const url = await start(configOf({ policies, use: [refusals()] }))
    const path = (name: string) => new URL(name, url).href
    await statusOf(path('/own'))
    await statusOf(path('/page'))
    const own = await fetch(path('/own'))
    expect([own.status, own.headers.get('x-policy')]).toEqual([420, 'per-ip'])
    expect(own.headers.get('content-type')).toBe('text/plain;charset=utf-8')
    expect(own.headers.get('cache-control')).toBe('no-store')
    expect(own.headers.get('ratelimit-policy')).toBe('"per-ip";q=1;w=3600')
    expect(await own.text()).toBe(`wait ${own.headers.get('retry-after')} s`)
    const page = await fetch(path('/page'), { headers: { accept: 'text/html' } })
    expect(page.headers.get('content-security-policy')).toContain("default-src 'nonce-")
    expect(page.headers.get('ratelimit')).toMatch(/^"page";r=0;t=\d+$/)
    expect(await page.text()).toContain('<h1>Too many requests</h1>')
  })

  test('A refusal by a function arrives unchanged, with its binary body and all of its cookies, and HEAD gets its length only.', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
    const headers: [string, string][] = [
      ['content-type', 'image/png'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ]
    const refusal = () => new Response(bytes, { status: 429, headers })
    const url = await start(configOf({ policies: [{ ...policy, limit: 1, refusal }] }))
    expect(await statusOf(url)).toBe(200)
    const response = await fetch(url)
    expect(response.status).toBe(429)
    expect(response.headers.get('content-type')).toBe('image/png')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes)
    const head = await fetch(url, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([429, ''])
  })

  test('A refused HEAD request gets the fields and no body.', async () => {
    const url = await start(configOf({ policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, { method: 'HEAD' })).toBe(200)
    const refused = await fetch(url, { method: 'HEAD' })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).not.toBeNull()
    expect(await refused.text()).toBe('')
    expect(await statusOf(url)).toBe(429)
  })

  test.each<[string, Options['clientAddress'] & {}]>([
    ['the address of the connection', 'socket'],
    ['trusted proxies that are not the peer', { forwardedFor: { trustedProxies: ['10.0.0.0/8'] } }],
  ])('With %s, X-Forwarded-For gives a client no second quota.', async (_, clientAddress) => {
    const url = await start(configOf({ clientAddress, policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, via('192.0.2.1'))).toBe(200)
    expect(await statusOf(url, via('192.0.2.2'))).toBe(429)
  })

  test('A client that goes around Cloudflare cannot choose its address, and each client of a named proxy has its quota.', async () => {
    const of = (trustedProxies: string[]) => ({
      clientAddress: { header: 'cf-connecting-ip', trustedProxies },
      policies: [{ ...policy, limit: 1 }],
      use: [proxies()],
    })
    const as = (address: string) => ({ headers: { 'cf-connecting-ip': address } })
    const direct = await start(configOf(of(['cloudflare'])))
    expect(await statusOf(direct, as('192.0.2.1'))).toBe(200)
    expect(await statusOf(direct, as('192.0.2.2'))).toBe(429)
    const behind = await start(configOf(of(['cloudflare', 'loopback'])))
    expect(await statusOf(behind, as('192.0.2.1'))).toBe(200)
    expect(await statusOf(behind, as('192.0.2.2'))).toBe(200)
    expect(await statusOf(behind, as('192.0.2.1'))).toBe(429)
  })

  test('Behind trusted proxies, each client has its own quota, and a forged entry changes nothing.', async () => {
    const clientAddress = { forwardedFor: { trustedProxies: ['127.0.0.1', '10.0.0.0/8'] } }
    const url = await start(configOf({ clientAddress, policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, via('192.0.2.1, 10.0.0.7'))).toBe(200)
    expect(await statusOf(url, via('192.0.2.2, 10.0.0.7'))).toBe(200)
    expect(await statusOf(url, via('203.0.113.9, 192.0.2.1, 10.0.0.7'))).toBe(429)
    expect(await statusOf(url, via('192.0.2.2'))).toBe(429)
  })

  test('With a number of proxies, the entry that the first of them wrote is the client.', async () => {
    const clientAddress = { forwardedFor: { trustedProxies: 2 } }
    const url = await start(configOf({ clientAddress, policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, via('203.0.113.9, 192.0.2.1, 10.0.0.7'))).toBe(200)
    expect(await statusOf(url, via('203.0.113.8, 192.0.2.1, 10.0.0.7'))).toBe(429)
    expect(await statusOf(url, via('203.0.113.9, 192.0.2.2, 10.0.0.7'))).toBe(200)
  })

  test('If the address cannot be read, every request gets 500.', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {}) // Hono and Express print the error.
    const clientAddress = () => {
      throw new Error('no address')
    }
    const options = configOf({ policies: [policy], clientAddress })
    const url = await start(options)
    expect(await statusOf(url)).toBe(500)
    expect(await statusOf(url)).toBe(500)
  })

  test('A policy with countOnly counts only the responses with these statuses.', async () => {
    const policies = [{ ...policy, limit: 2, countOnly: '4xx' as const }]
    const url = await start(configOf({ policies }))
    for (let count = 1; count <= 4; count++) expect(await soon(url)).toBe(200)
    for (let count = 1; count <= 2; count++) expect(await soon(`${url}/status/404`, 404)).toBe(404)
    expect(await statusOf(`${url}/status/404`)).toBe(429)
    expect(await statusOf(url)).toBe(429)
  })

  test.each([{ headers: ['draft-11' as const] }, { headers: [] }])(
    'A response refunds what it did not cost, with %j.',
    async (more) => {
      const cost = { response: 'x-price', otherwise: 5 }
      const url = await start(configOf({ ...more, policies: [{ ...policy, cost }] }))
      // Without refunds, the third request would not pass.
      for (let count = 1; count <= 3; count++) expect(await soon(`${url}/priced/2`)).toBe(200)
      expect(await statusOf(`${url}/priced/2`)).toBe(429)
    },
  )

  test('A slot is released when the response ends.', async () => {
    const url = await start(configOf({ policies: [slots] }))
    const held = await fetch(`${url}/slow`)
    expect(await statusOf(url)).toBe(429)
    release()
    expect(await held.text()).toMatch(/^first /)
    expect(await soon(url)).toBe(200)
  })

  test('A slot is released when the client disconnects.', async () => {
    const url = await start(configOf({ policies: [slots] }))
    const client = new AbortController()
    await fetch(`${url}/slow`, { signal: client.signal })
    expect(await statusOf(url)).toBe(429)
    client.abort()
    expect(await soon(url)).toBe(200)
  })

  test('Ten of twenty pipelined requests pass.', async () => {
    const url = await start(configOf({ policies: [policy] }))
    const one = 'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n'
    const answers = await raw(url, one.repeat(19) + request('/', 'Host: a.example'), false)
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    // Concurrent decisions may be made in another order than that of the requests.
    expect(statuses.toSorted()).toEqual(
      Array.from({ length: 20 }, (_, index) => (index < 10 ? '200' : '429')),
    )
  })

  test('The slots of pipelined requests are released when the client disconnects.', async () => {
    const url = await start(configOf({ policies: [{ ...slots, limit: 2 }] }))
    const { hostname, port } = new URL(url)
    const client = connect(Number(port), hostname)
    client.write('GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n'.repeat(2))
    await expect.poll(heldRequests).toBe(2)
    expect(await statusOf(url)).toBe(429)
    client.destroy()
    for (const _ of [1, 2]) {
      await expect.poll(async () => (await fetch(`${url}/slow`)).status).toBe(200)
    }
  })

  test.each([
    ['deny', 503],
    ['allow', 200],
    ['local', 200],
  ] as const)(
    'If Redis does not answer, onStoreError: %j gives %i.',
    async (onStoreError, status) => {
      const silent = await listen(createServer(() => {}))
      vi.spyOn(console, 'error').mockImplementation(() => {}) // the event store-error
      vi.stubEnv('UPSTASH_REDIS_REST_URL', silent)
      onTestFinished(() => void vi.unstubAllEnvs())
      const deadline = '200ms'
      const url = await start(configOf({ deadline, policies: [{ ...policy, onStoreError }] }))
      expect(await statusOf(url)).toBe(status)
      expect(await statusOf(url)).toBe(status)
    },
  )

  test('A connection stays usable after a refused POST with a body.', async () => {
    const url = await start(configOf({ policies: [{ ...policy, limit: 1 }] }))
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      expect(await sendOn(agent, url, 'POST', 'x'.repeat(200_000))).toMatchObject({ status: 200 })
      const refused = await sendOn(agent, url, 'POST', 'x'.repeat(200_000))
      expect(refused.status).toBe(429)
      expect(await sendOn(agent, url, 'GET')).toEqual({ status: 429, reused: true })
    } finally {
      agent.destroy()
    }
  })
})
