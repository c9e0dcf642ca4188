/** Real servers of Node with one limiter each, for the tests of the adapters. */

import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { connect, createServer as createHttp2Server, type OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { getRequestListener, serve } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll, afterEach, beforeAll, onTestFinished } from 'vitest'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import { rateLimiter as honoRateLimiter } from '../../src/hosts/app/middleware.ts'
import { fastifyRateLimiter, rateLimiter } from '../../src/hosts/node/node.ts'
import type { Limits } from '../../src/limits/door.ts'
import { useDatabase as useDatabaseOf } from './database.ts'
import { concurrency } from './features.ts'

export type Options = Omit<ConfigOptions, 'origin'>

let namespaces = 0
/** A configuration with a namespace of its own, and a long deadline, so that a slow machine causes no store errors. */
export const configOf = (options: Options): Options => ({
  namespace: `test-${++namespaces}`,
  deadline: '10s',
  clientAddress: 'socket',
  use: [concurrency()],
  ...options,
})

/** A database for the servers of a file. The variables of the process name it. */
export function useDatabase(): void {
  const { env } = useDatabaseOf()
  beforeAll(() => void Object.assign(process.env, env))
  afterEach(() => release())
}

/** Replaces `Request` and `Response` for the tests of a file, as `serve` of `@hono/node-server` does by default. */
export function useLightClasses(): void {
  const { Request, Response } = globalThis
  beforeAll(() => void getRequestListener(() => new Response()))
  afterAll(() => {
    Object.defineProperties(globalThis, {
      Request: { value: Request },
      Response: { value: Response },
    })
  })
}

let slow = Promise.withResolvers<void>()
let held = 0
/** Ends the responses of `/slow` and `/hold` that are in flight. */
export function release() {
  slow.resolve()
  slow = Promise.withResolvers()
  held = 0
}

/** The number of requests that the app has held since the last `release`. They have passed their limiter. */
export const heldRequests = () => held

/** Listens on a free loopback port until the test finishes. Returns the URL. */
export async function listen(server: Server): Promise<string> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Listens with HTTP/2 until the test finishes. Returns a function that sends a request. Its result is the status and the body. */
export async function listenHttp2(listener: Parameters<typeof createHttp2Server>[1]) {
  const server = createHttp2Server(listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  return async (headers: OutgoingHttpHeaders, body?: string): Promise<[number, string]> => {
    const sent = client.request({ ':path': '/', ...headers }, { endStream: body === undefined })
    if (body !== undefined) sent.end(body)
    const [{ ':status': status }] = (await once(sent, 'response')) as [{ ':status': number }]
    return [status, await text(sent)]
  }
}

/**
 * The app behind the limiters. The path selects its response: `/status/404` has that status, `/priced/2` that price, and every other path
 * is `ok`. `/more/ann` decides the policy `per-user` for ann by the door of the request. `/slow` sends one chunk and ends with `release`, or with its client. `/begun` does not listen for its client, and `/hold/404`
 * sends nothing before `release`, and then that status.
 */
export const app: RequestListener = async (request, response) => {
  const [, kind, value] = (request.url ?? '/').split('/')
  const isHeld = kind === 'hold' || kind === 'slow' || kind === 'begun'
  if (isHeld) held += 1
  if (isHeld && kind !== 'hold') response.write('first ')
  const left = kind === 'slow' ? [once(response, 'close')] : []
  if (isHeld && (await Promise.race([slow.promise, ...left]))) return
  if (kind === 'status' || (kind === 'hold' && value)) response.statusCode = Number(value)
  if (kind === 'priced') response.writeHead(200, { 'x-price': value })
  if (kind === 'more') return void response.end(await more(request.sluice, value))
  response.end('ok')
}

const more = async (door: Limits | undefined, key = '') =>
  JSON.stringify(await door?.limit('per-user', key))

const inHono = new Hono<{ Variables: { sluice: Limits } }>()
inHono.get('/more/:key', async (c) => c.text(await more(c.var.sluice, c.req.param('key'))))
inHono.get('/status/:code', (c) => c.text('ok', Number(c.req.param('code')) as 200))
inHono.get('/priced/:price', (c) => c.text('ok', 200, { 'x-price': c.req.param('price') }))
inHono.get('/slow', (c) => {
  held += 1
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode('first ')),
    async pull(controller) {
      await slow.promise
      controller.close()
    },
  })
  return c.body(body)
})
inHono.all('*', (c) => c.text('ok'))

/** Starts a server with this limiter in front of the app. */
type Start = (options: Options) => Promise<string>

export const startHttp: Start = async (options) => {
  const limit = rateLimiter(options)
  const server = createServer(async (request, response) => {
    try {
      if (await limit(request, response)) app(request, response)
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  return listen(server)
}

export const startExpress: Start = (options) => {
  const server = express()
  server.use(rateLimiter(options))
  server.use((request, response) => void app(request, response))
  return listen(createServer(server))
}

export const startFastify: Start = async (options) => {
  const server = fastify()
  await server.register(fastifyRateLimiter(options))
  server.all<{ Params: { value: string } }>('/status/:value', (request, reply) =>
    reply.code(Number(request.params.value)).send('ok'),
  )
  server.all<{ Params: { value: string } }>('/more/:value', (request) =>
    more(request.getDecorator<Limits>('sluice'), request.params.value),
  )
  server.all<{ Params: { value: string } }>('/priced/:value', (request, reply) =>
    reply.header('x-price', request.params.value).send('ok'),
  )
  server.all('/*', (request, reply) => {
    reply.hijack()
    app(request.raw, reply.raw)
  })
  server.addContentTypeParser('*', (_request, _body, done) => done(null))
  await server.listen({ port: 0, host: '127.0.0.1' })
  return listen(server.server)
}

export const startHono: Start = async (options) => {
  const server = new Hono()
  server.use(honoRateLimiter(options))
  server.route('/', inHono)
  // Other test files of this process need the classes of Node.
  const running = serve({
    fetch: server.fetch,
    port: 0,
    hostname: '127.0.0.1',
    overrideGlobalObjects: false,
  })
  await once(running, 'listening')
  return listen(running as Server)
}

export const nodeServers: [name: string, start: Start][] = [
  ['http', startHttp],
  ['Express', startExpress],
  ['Fastify', startFastify],
]
export const servers: typeof nodeServers = [...nodeServers, ['Hono on Node', startHono]]
