/** Policies by the body in servers of Node: the app reads the same body after the limiter. */
import { once } from 'node:events'
import { createServer, request as http, type IncomingMessage } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { bodies } from '../../../../src/features/bodies/index.ts'
import { rateLimiter as honoRateLimiter } from '../../../../src/hosts/app/middleware.ts'
import { rateLimitProxy } from '../../../../src/hosts/node/next.ts'
import { fastifyRateLimiter, rateLimiter } from '../../../../src/hosts/node/node.ts'
import {
  configOf,
  listen,
  listenHttp2,
  type Options,
  useDatabase,
} from '../../../support/node-servers.ts'

useDatabase()

const options = (limit = 2): Options =>
  configOf({
    policies: [
      {
        name: 'tools',
        limit,
        window: '1h',
        key: 'body:name',
        onMissingKey: 'refuse',
        match: { method: 'POST' },
      },
    ],
    use: [bodies()],
  })

/** Starts an app of Express with these handlers, which answers with the parsed body. */
function startExpress(...handlers: express.RequestHandler[]) {
  const app = express().use(...handlers)
  app.post('/', (request, response) => void response.end(JSON.stringify(request.body)))
  return listen(createServer(app))
}

/** Servers that answer with the body that the app has read. */
const servers: [string, (options: Options) => Promise<string>][] = [
  [
    'http',
    (options) => {
      const limit = rateLimiter(options)
      return listen(
        createServer(async (request, response) => {
          if (await limit(request, response)) response.end(await text(request))
        }),
      )
    },
  ],
  [
    'Express, before express.json()',
    (options) => startExpress(rateLimiter(options), express.json({ limit: '1mb' })),
  ],
  [
    'Express, after express.json()',
    (options) => startExpress(express.json({ limit: '1mb' }), rateLimiter(options)),
  ],
  [
    'Fastify',
    async (options) => {
      const app = fastify()
      await app.register(fastifyRateLimiter(options))
      app.post('/', (request) => JSON.stringify(request.body))
      await app.ready()
      return listen(app.server)
    },
  ],
  [
    'Hono on Node',
    (options) => {
      const app = new Hono().use(honoRateLimiter(options))
      app.post('/', async (c) => c.text(JSON.stringify(await c.req.json())))
      return listen(createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false })))
    },
  ],
]

const post = (url: string, body: string) =>
  fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })

/** Posts JSON in parts, with a pause after the header and after each part. */
async function postParts(url: string, parts: (string | Buffer)[], pauseMs: number, more = {}) {
  const headers = { 'content-type': 'application/json', ...more }
  const sent = http(url, { method: 'POST', headers })
  const answered: Promise<[IncomingMessage]> = once(sent, 'response') as never
  sent.flushHeaders()
  if (pauseMs > 0) await sleep(pauseMs)
  for (const part of parts) {
    sent.write(part)
    await sleep(pauseMs)
  }
  sent.end()
  const [response] = await answered
  return response
}

describe.each(servers)('%s', (name, start) => {
  test('The limiter counts by the body, and the app reads all of it.', async () => {
    const url = await start(options())
    const body = JSON.stringify({ name: 'search', pad: 'x'.repeat(50_000) })
    const first = await post(url, body)
    expect(first.status).toBe(200)
    expect(await first.text()).toBe(body)
    expect((await post(url, '{"name":"other"}')).status).toBe(200)
    expect((await post(url, body)).status).toBe(200)
    const refused = await post(url, body)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ 'violated-policies': ['tools'] })
  })

  test('A body in chunks is read, and a body without a value is refused.', async () => {
    const url = await start(options())
    const response = await postParts(url, ['{"na', 'me":', '"a"}'], 20)
    expect(response.statusCode).toBe(200)
    expect(await text(response)).toBe('{"name":"a"}')
    expect((await post(url, '{}')).status).toBe(403)
  })

  test('A large body is refused, and the connection serves the next request.', async () => {
    const url = await start(options())
    const large = JSON.stringify({ name: 'a', pad: 'x'.repeat(300_000) })
    // After express.json() the app has chosen what to read.
    expect((await post(url, large)).status).toBe(name.includes('after') ? 200 : 403)
    expect((await post(url, '{"name":"b"}')).status).toBe(200)
  })
})

test('A body that is larger than the limiter reads arrives whole.', async () => {
  const [, start] = servers[0]!
  const url = await start({
    ...options(),
    policies: [{ name: 'all', limit: 5, window: '1h', key: ['global', 'body:name'] }],
  })
  const large = JSON.stringify({ name: 'a', pad: 'x'.repeat(300_000) })
  expect(await (await post(url, large)).text()).toBe(large)
})

test.each(servers.filter(([name]) => !name.includes('after')))(
  '%s: A client that is already refused gets its 429 although it withholds its body.',
  async (_, start) => {
    const url = await start({
      ...options(),
      policies: [...options().policies!, { name: 'all', limit: 1, window: '1h' }],
      use: [bodies({ timeout: '60s' })],
    })
    expect((await post(url, '{"name":"a"}')).status).toBe(200)
    expect((await post(url, '{"name":"a"}')).status).toBe(429)
    const headers = { 'content-type': 'application/json', 'content-length': '100' }
    const sent = http(url, { method: 'POST', headers })
    sent.on('error', () => {})
    sent.write('{"name":')
    const [response]: [IncomingMessage] = (await once(sent, 'response')) as never
    expect(response.statusCode).toBe(429)
    sent.destroy()
  },
)

/** Counts each value of `name`, for all methods. A request without a body has no value. */
const anyMethod = (): Options => ({
  ...options(),
  policies: [{ name: 'tools', limit: 1, window: '1h', key: 'body:name', onMissingKey: 'refuse' }],
})

test('The body of a GET request counts too, because an app on Node can read it.', async () => {
  const [, start] = servers[0]!
  const url = await start(anyMethod())
  const get = async () => {
    const body = '{"name":"a"}'
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const sent = http(url, { method: 'GET', headers }).end(body)
    const [response]: [IncomingMessage] = (await once(sent, 'response')) as never
    return [response.statusCode, await text(response)]
  }
  expect(await get()).toEqual([200, '{"name":"a"}'])
  expect((await get())[0]).toBe(429)
})

test('A request of HTTP/2 without a body has no value, and its body counts if there is one.', async () => {
  const limit = rateLimiter(anyMethod())
  const sent = await listenHttp2(async (request, response) => {
    if (await limit(request, response)) response.end(await text(request))
  })
  const send = (method: string, body?: string) =>
    sent({ ':method': method, 'content-type': 'application/json' }, body)
  for (const method of ['GET', 'POST']) {
    const [status, problem] = await send(method)
    expect([status, problem]).toEqual([403, expect.stringContaining('lacks body:name')])
  }
  expect(await send('POST', '{"name":"a"}')).toEqual([200, '{"name":"a"}'])
  expect((await send('POST', '{"name":"a"}'))[0]).toBe(429)
})

const shared = (): Options => ({
  ...options(),
  policies: [{ name: 'all', limit: 5, window: '1h', key: ['global', 'body:name'] }],
})

/** Answers with the bytes that the app has read by events, as most parsers do. */
const echo =
  (limit: ReturnType<typeof rateLimiter>) =>
  async (request: IncomingMessage, response: { end(body: Buffer): unknown }) => {
    if (!(await limit(request, response as never))) return
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => response.end(Buffer.concat(chunks)))
  }
const startEcho = () => listen(createServer(echo(rateLimiter(shared()))))

test('A body that the limiter does not begin to read arrives while the client sends it, each byte once.', async () => {
  const url = await startEcho()
  const zipped = gzipSync('{"name":"a"}')
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(url, {
    method: 'POST',
    body: zipped,
    headers: { ...headers, 'content-encoding': 'gzip' },
  })
  expect(Buffer.from(await answer.arrayBuffer()).equals(zipped)).toBe(true)

  const part = Buffer.alloc(100_000, 'x')
  const response = await postParts(url, [part, part, part], 100, { 'content-length': '300000' })
  expect((await buffer(response)).equals(Buffer.concat([part, part, part]))).toBe(true)
})

test('An app that reads an empty body in chunks gets its end.', async () => {
  const url = await startEcho()
  for (const wait of [0, 50]) {
    const response = await postParts(url, [], wait, { 'transfer-encoding': 'chunked' })
    expect([response.statusCode, await text(response)]).toEqual([200, ''])
  }
})

test.each(['{"name":"a"}', '', JSON.stringify({ name: 'a', pad: 'x'.repeat(300_000) })])(
  'A body of HTTP/2 arrives whole (%#).',
  async (body) => {
    const send = await listenHttp2(echo(rateLimiter(shared())) as never)
    const headers = { ':method': 'POST', 'content-type': 'application/json' }
    expect((await send(headers, body))[1]).toBe(body)
  },
)

test('Two limiters of one app both read the body, before its parser and after it.', async () => {
  const [first, second, third] = [options(5), options(4), options(1)].map((one) => rateLimiter(one))
  const url = await startExpress(first!, second!, express.json(), third!)
  expect(await (await post(url, '{"name":"a"}')).text()).toBe('{"name":"a"}')
  expect((await post(url, '{"name":"a"}')).status).toBe(429)
})

test('A client that hangs up in the middle of a body leaves the server running.', async () => {
  const [, start] = servers[0]!
  const url = await start(options())
  const sent = http(url, { method: 'POST', headers: { 'content-type': 'application/json' } })
  sent.on('error', () => {})
  sent.write('{"name":')
  await sleep(50)
  sent.destroy()
  expect((await post(url, '{"name":"b"}')).status).toBe(200)
})

test('The proxy of Next.js counts by the body, which stays readable.', async () => {
  const proxy = rateLimitProxy({
    ...options(1),
    clientAddress: { forwardedFor: { trustedProxies: 1 } },
  })
  const event = { waitUntil: () => {} }
  const request = () =>
    new Request('https://a.test/', {
      method: 'POST',
      body: '{"name":"a"}',
      headers: { 'content-type': 'application/json' },
    })
  const first = request()
  expect((await proxy(first, event)).status).toBe(200)
  expect(await first.text()).toBe('{"name":"a"}')
  expect((await proxy(request(), event)).status).toBe(429)
})
