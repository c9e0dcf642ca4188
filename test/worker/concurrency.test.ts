/** Slots and other charges that depend on the response, in workerd: when requests take them, and when they give them back. */
import { once } from 'node:events'
import { request as http, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import WebSocket, { WebSocketServer } from 'ws'
import type { Stack } from '../../tools/stack.ts'
import { startWorker } from '../../tools/worker.ts'
import { type Script, startScriptedOrigin } from '../support/scripted-origin.ts'
import { startStack } from '../support/stack.ts'

const LIFE_MS = 10_000
/** Each test has 3 slots under /<test>/. `/<test>/left` costs 0, so it shows the free slots without taking one. */
const policy = (name: string, limit = 3, window: string | number = '1h') => ({
  name,
  algorithm: 'concurrency',
  limit,
  window,
  match: { path: `/${name}/*` },
  cost: [{ path: `/${name}/left`, cost: 0 }],
})
const names = ['held', 'body', 'aborted', 'early', 'ends', 'fields', 'socket']
const config = {
  deadline: '10s',
  policies: [
    ...names.map((name) => policy(name)),
    policy('killed', 10, LIFE_MS),
    ...['login', 'client'].map((name) => ({
      ...policy(name, 5),
      algorithm: 'fixed-window',
      countOnly: '4xx',
    })),
  ],
} as never

const gzipped = gzipSync('sluice '.repeat(1000))
/** Responses that the origin has not finished, by path. */
const held = new Map<string, ServerResponse[]>()
const finish = (path: string) => {
  for (const response of held.get(path)?.splice(0) ?? []) response.end('ok')
}

const script: Script = ({ pathname }, response, { socket }) => {
  const behaviour = pathname.split('/')[2]!
  const scripts: Record<string, () => unknown> = {
    hold: () => held.set(pathname, [...(held.get(pathname) ?? []), response]),
    begin: () => {
      response.writeHead(200).write('begun')
      scripts.hold!()
    },
    drip: async () => {
      response.writeHead(200)
      while (!response.destroyed && response.write('drip ')) await sleep(50)
    },
    reset: () => socket.resetAndDestroy(),
    cut: () => {
      response.writeHead(200, { 'content-length': 1000 }).write('half')
      setTimeout(() => socket.resetAndDestroy(), 50)
    },
    401: () => setTimeout(() => response.writeHead(401).end(), 1000),
    204: () => response.writeHead(204).end(),
    304: () => response.writeHead(304, { etag: '"a"' }).end(),
    empty: () => response.writeHead(200, { 'content-length': 0 }).end(),
    length: () =>
      response
        .writeHead(200, { 'content-length': 5, etag: '"a"', 'set-cookie': ['a=1', 'b=2'] })
        .end('hello'),
    gzip: () =>
      response
        .writeHead(200, {
          'content-encoding': 'gzip',
          'content-length': gzipped.length,
          etag: '"z"',
        })
        .end(gzipped),
    part: () =>
      response
        .writeHead(206, {
          'content-encoding': 'gzip',
          'content-range': `bytes 20-39/${gzipped.length}`,
          'content-length': 20,
          etag: '"z"',
        })
        .end(gzipped.subarray(20, 40)),
  }
  const run = scripts[behaviour] ?? (() => response.end('ok'))
  run()
}

const anyConfig = fileURLToPath(new URL('../../.cache/workers/any-config', import.meta.url))
let stack: Stack
let origin: Awaited<ReturnType<typeof startScriptedOrigin>>
let env: Record<string, string>
beforeAll(async () => {
  origin = await startScriptedOrigin(script)
  const sockets = new WebSocketServer({ server: origin.server })
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(String(data))))
  stack = await startStack({ config, env: { ORIGIN: origin.url } })
  env = {
    UPSTASH_REDIS_REST_URL: stack.bridge.url,
    UPSTASH_REDIS_REST_TOKEN: stack.bridge.token,
    ORIGIN: origin.url,
    CONFIG: JSON.stringify(config),
  }
})
afterAll(async () => {
  await stack?.stop()
  await origin?.close()
})

/** Sends a request directly to workerd, because Miniflare's entry compresses and buffers small parts of a body. */
const send = (path: string, init: RequestInit = {}, url = stack.worker.directUrl) =>
  fetch(url + path, { ...init, headers: { 'cf-connecting-ip': '203.0.113.7' } })
const get = async (...request: Parameters<typeof send>) => {
  const response = await send(...request)
  return { status: response.status, headers: response.headers, body: await response.text() }
}
const left = async (name: string, url?: string) =>
  Number(/;r=(\d+)/.exec((await get(`/${name}/left`, {}, url)).headers.get('ratelimit')!)![1])
const arrived = (path: string) => expect.poll(() => held.get(path)?.length ?? 0)
const leftOf = (name: string) => expect.poll(() => left(name))

test('A concurrency policy admits requests up to its limit, and one more for each request that ends.', async () => {
  const requests = Array.from({ length: 12 }, () => get('/held/hold'))
  await arrived('/held/hold').toBe(3)
  const quick = await get('/held/quick')
  expect(quick.status).toBe(429)
  expect(quick.headers.get('ratelimit-policy')).toBe('"held";q=3;qu="concurrent-requests"')
  expect(quick.headers.get('ratelimit')).toBe('"held";r=0')
  expect(quick.headers.has('retry-after')).toBe(false)
  expect(JSON.parse(quick.body)).toMatchObject({
    'violated-policies': ['held'],
    detail: expect.stringMatching(/when one of them ends, or in 60 minutes\.$/),
    retryAfterMs: expect.any(Number),
  })
  finish('/held/hold')
  const statuses = (await Promise.all(requests)).map(({ status }) => status).sort()
  expect(statuses).toEqual([...Array(3).fill(200), ...Array(9).fill(429)])
  await leftOf('held').toBe(3)
  expect((await get('/held/quick')).status).toBe(200)
})

test('A request holds its slot until its response body has ended.', async () => {
  const response = await send('/body/begin')
  expect(response.status).toBe(200)
  await sleep(300)
  expect(await left('body')).toBe(2)
  finish('/body/begin')
  expect(await response.text()).toBe('begunok')
  await leftOf('body').toBe(3)
})

test('A client that hangs up during the response body releases its slot.', async () => {
  const client = new AbortController()
  const response = await send('/aborted/drip', { signal: client.signal })
  await response.body!.getReader().read()
  expect(await left('aborted')).toBe(2)
  client.abort()
  await leftOf('aborted').toBe(3)
})

test('A client that hangs up before the origin has answered releases its slot.', async () => {
  const client = new AbortController()
  const response = send('/early/hold', { signal: client.signal }).catch(() => 'aborted')
  await arrived('/early/hold').toBe(1)
  expect(await left('early')).toBe(2)
  client.abort()
  expect(await response).toBe('aborted')
  await sleep(200)
  finish('/early/hold')
  await leftOf('early').toBe(3)
})

test.each([200, 404])(
  'If the client hangs up, the charge is still settled by the status %d of the origin.',
  async (status) => {
    const before = await left('client')
    const client = new AbortController()
    const response = send('/client/hold', { signal: client.signal }).catch(() => 'aborted')
    await arrived('/client/hold').toBe(1)
    expect(await left('client')).toBe(before - 1)
    client.abort()
    expect(await response).toBe('aborted')
    await sleep(200)
    for (const one of held.get('/client/hold')!) one.statusCode = status
    finish('/client/hold')
    await leftOf('client').toBe(status === 404 ? before - 1 : before)
  },
)

test('Of 100 concurrent failed logins with a limit of 5, only 5 reach a slow origin.', async () => {
  const answers = await Promise.all(Array.from({ length: 100 }, () => get('/login/401')))
  const count = (status: number) => answers.filter((answer) => answer.status === status).length
  expect([count(401), count(429)]).toEqual([5, 95])
  // Now even the correct password is refused.
  expect((await get('/login/right')).status).toBe(429)
})

test.each<[string, number, RequestInit?]>([
  ['204', 204],
  ['304', 304],
  ['empty', 200],
  ['length', 200, { method: 'HEAD' }],
  ['gzip', 200, { method: 'HEAD' }],
  ['reset', 502],
  ['reset', 502, { method: 'HEAD' }], // Hono drops the body of Sluice's own response to HEAD
])(
  'A response that ends at once (%s, status %d) releases its slot.',
  async (behaviour, status, options) => {
    for (let time = 0; time < 5; time++) {
      const answer = await get(`/ends/${behaviour}`, options)
      expect([answer.status, answer.headers.has('ratelimit')]).toEqual([status, true])
      await leftOf('ends').toBe(3)
    }
  },
)

test('A body that the origin breaks off fails for the client, and its slot is released.', async () => {
  const response = await send('/ends/cut')
  expect(response.status).toBe(200)
  await expect(response.text()).rejects.toThrow()
  await leftOf('ends').toBe(3)
})

test('Content-Length, ETag and cookies of the origin are unchanged under a concurrency policy.', async () => {
  const { headers, body } = await get('/fields/length')
  expect(body).toBe('hello')
  expect(headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  expect([headers.get('etag'), headers.get('content-length')]).toEqual(['"a"', '5'])
  const head = await send('/fields/length', { method: 'HEAD' })
  expect([head.headers.get('etag'), head.headers.get('content-length')]).toEqual(['"a"', '5'])
})

test.each([
  ['gzip', 200, gzipped],
  ['part', 206, gzipped.subarray(20, 40)], // a part that cannot be decoded by itself
])(
  'A compressed body (%s) arrives byte for byte with status %d.',
  async (behaviour, status, bytes) => {
    const outgoing = http(`${stack.worker.directUrl}/fields/${behaviour}`, {
      headers: { 'accept-encoding': 'gzip' },
    })
    const [response] = (await once(outgoing.end(), 'response')) as [IncomingMessage]
    expect(response.statusCode).toBe(status)
    expect(response.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-length': String(bytes.length),
      etag: '"z"',
    })
    expect(await buffer(response)).toEqual(bytes)
  },
)

test('A WebSocket releases its slot as soon as it is open.', async () => {
  const socket = new WebSocket(`${stack.worker.directUrl.replace('http', 'ws')}/socket/any`, {
    headers: { 'cf-connecting-ip': '203.0.113.7' },
  })
  await once(socket, 'open')
  await leftOf('socket').toBe(3)
  socket.send('hello')
  expect(String((await once(socket, 'message'))[0])).toBe('hello')
  socket.close()
})

test('Slots of a killed Worker expire after the window, and not earlier.', async () => {
  held.delete('/killed/hold') // a failed run may have left some
  const dying = await startWorker(anyConfig, { env })
  const before = Date.now()
  const interrupted = Array.from({ length: 10 }, () =>
    send('/killed/hold', {}, dying.directUrl).catch(() => 'interrupted'),
  )
  await arrived('/killed/hold').toBe(10)
  const after = Date.now()
  await dying.stop()
  expect(new Set(await Promise.all(interrupted))).toEqual(new Set(['interrupted']))
  const refused = await get('/killed/quick')
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(LIFE_MS / 1000)
  await expect.poll(async () => (await get('/killed/quick')).status, { timeout: 20_000 }).toBe(200)
  expect(Date.now()).toBeGreaterThanOrEqual(before + LIFE_MS)
  await sleep(Math.max(0, after + LIFE_MS - Date.now()))
  await leftOf('killed').toBe(10)
}, 60_000)
