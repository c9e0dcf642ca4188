/** What every server does: Express, Fastify, plain `http`, and Hono on Node. */
import { Agent, request as send } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { configOf, release, servers, useDatabase } from '../../support/node-servers.ts'

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

  test('A refused HEAD request gets the fields and no body.', async () => {
    const url = await start(configOf({ policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, { method: 'HEAD' })).toBe(200)
    const refused = await fetch(url, { method: 'HEAD' })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).not.toBeNull()
    expect(await refused.text()).toBe('')
    expect(await statusOf(url)).toBe(429)
  })

  test('With the address of the connection, X-Forwarded-For gives a client no second quota.', async () => {
    const url = await start(configOf({ policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, via('192.0.2.1'))).toBe(200)
    expect(await statusOf(url, via('192.0.2.2'))).toBe(429)
  })

  test('Behind trusted proxies, each client has its own quota, and a forged entry changes nothing.', async () => {
    const clientAddress = { forwardedFor: { trustedProxies: ['127.0.0.1', '10.0.0.0/8'] } }
    const url = await start(configOf({ clientAddress, policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, via('192.0.2.1, 10.0.0.7'))).toBe(200)
    expect(await statusOf(url, via('192.0.2.2, 10.0.0.7'))).toBe(200)
    expect(await statusOf(url, via('203.0.113.9, 192.0.2.1, 10.0.0.7'))).toBe(429)
    expect(await statusOf(url, via('192.0.2.2'))).toBe(429)
  })

  test('X-Forwarded-For of a peer that is not a trusted proxy is ignored.', async () => {
    const clientAddress = { forwardedFor: { trustedProxies: ['10.0.0.0/8'] } }
    const url = await start(configOf({ clientAddress, policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, via('192.0.2.1'))).toBe(200)
    expect(await statusOf(url, via('192.0.2.2'))).toBe(429)
  })

  test('With a number of proxies, the entry that the first of them wrote is the client.', async () => {
    const clientAddress = { forwardedFor: { trustedProxies: 2 } }
    const url = await start(configOf({ clientAddress, policies: [{ ...policy, limit: 1 }] }))
    expect(await statusOf(url, via('203.0.113.9, 192.0.2.1, 10.0.0.7'))).toBe(200)
    expect(await statusOf(url, via('203.0.113.8, 192.0.2.1, 10.0.0.7'))).toBe(429)
    expect(await statusOf(url, via('203.0.113.9, 192.0.2.2, 10.0.0.7'))).toBe(200)
  })

  test('Without clientAddress, every request gets 500.', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {}) // Hono and Express print the error.
    const { clientAddress: _, ...options } = configOf({ policies: [policy] })
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
