/** The hosts of a limiter: each passes a request to the limiter as its servers do, and an admitted one to the origin. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { duplexPair } from 'node:stream'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import type { Sluice } from '../../src/hosts/app/sluice.ts'

/** A request on its way to a host, and what surrounds it. */
export interface Call {
  request: Request
  /** The address of the connection. */
  address: string
  env: object
  waitUntil: (promise: Promise<unknown>) => void
  /** The answer of the origin or the handler. */
  respond: () => Promise<Response>
}

interface Reply {
  /** The decision, where the host shows it. */
  decided?: unknown
  response: Response
}

export interface Limiter {
  (call: Call): Promise<Reply>
  /** Resolves when it takes calls. Until then a framework may use random numbers. */
  ready?: PromiseLike<unknown>
}

/** The answer to a request, with all that follows from it. */
export type Answer =
  | { decided: unknown; status: number; headers: [string, string][]; body: unknown }
  | { error: string }

type Middleware = (...args: unknown[]) => Promise<unknown>
// biome-ignore lint/suspicious/noExplicitAny: exports of any version
type Exported = (name: string, entry?: string) => any
type Host = (exported: Exported, options: object) => Limiter

const contextOf = ({ waitUntil }: Call) => ({ waitUntil, passThroughOnException() {}, props: {} })

const app: Host = (exported, options) => {
  const { check }: Sluice = exported('createSluice')(options)
  return async ({ request, env, address, waitUntil, respond }) => {
    const runtime = { env, remoteAddress: address, waitUntil }
    const { decision, allowed, response, finish } = await check(request, runtime)
    return { decided: { decision, allowed }, response: response ?? finish(await respond()) }
  }
}

/** It fetches from the origin. */
const gateway: Host = (exported, options) => {
  const worker = exported('createGateway')(options)
  return async (call) => ({
    response: await worker.fetch(call.request, call.env, contextOf(call)),
  })
}

const hono: Host = (exported, options) => {
  const limit = exported('rateLimiter', '.')(options)
  return async (call) => {
    let decided: unknown
    const worker = new Hono().use(limit).all('*', (c) => {
      decided = c.get('rateLimit' as never)
      return call.respond()
    })
    const env = { ...call.env, incoming: { socket: { remoteAddress: call.address } } }
    const response = await worker.fetch(call.request, env, contextOf(call))
    return { decided, response }
  }
}

const next: Host = (exported, options) => {
  const calls = new WeakMap<Request, Call>()
  const own = (request: Request) => calls.get(request)!.respond()
  const proxy = exported('rateLimitProxy', './next')(options, own)
  return async (call) => {
    calls.set(call.request, call)
    return { response: await proxy(call.request, { waitUntil: call.waitUntil }) }
  }
}

/** A request as a server of Node has received it. Its `call` is the one that it belongs to. */
type Incoming = IncomingMessage & { call?: Call; rateLimit?: unknown }
type Handler = (incoming: Incoming, outgoing: ServerResponse) => unknown

/** A server of Node without a network: its connections end in this process. */
function onNode(handler: Handler): Limiter {
  return async (call) => {
    let decided: Incoming | undefined
    const server = createServer((incoming: Incoming, outgoing) => {
      decided = incoming
      outgoing.sendDate = false
      incoming.call = call
      return handler(incoming, outgoing)
    })
    const [near, far] = duplexPair()
    server.emit('connection', Object.assign(far, { remoteAddress: call.address, encrypted: true }))
    const response = await sent(call.request, near)
    return { decided: decided?.rateLimit, response }
  }
}

async function sent({ url, method, headers, body }: Request, connection: unknown) {
  const { host, pathname, search } = new URL(url)
  const bytes = body && Buffer.from(await new Response(body).arrayBuffer())
  const sending = request({
    method,
    path: `${pathname}${search}`,
    headers: {
      host,
      connection: 'close',
      ...(bytes && { 'content-length': bytes.length }),
      ...Object.fromEntries(headers),
    },
    createConnection: () => connection as never,
  })
  const [incoming, content] = await new Promise<[IncomingMessage, Buffer[]]>((resolve, reject) => {
    sending.on('error', reject)
    sending.on('response', (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('end', () => resolve([incoming, chunks]))
      incoming.on('error', reject)
    })
    sending.end(bytes ?? undefined)
  })
  const fields = new Headers()
  const { rawHeaders, statusCode } = incoming
  for (let at = 0; at < rawHeaders.length; at += 2) {
    fields.append(rawHeaders[at]!, rawHeaders[at + 1]!)
  }
  const isEmpty = statusCode === 204 || statusCode === 304
  return new Response(isEmpty ? null : Buffer.concat(content), {
    status: statusCode!,
    headers: fields,
  })
}

async function answer({ call }: Incoming, outgoing: ServerResponse) {
  const { status, headers, body } = await call!.respond()
  outgoing.statusCode = status
  for (const [name, value] of headers) outgoing.setHeader(name, value)
  for await (const chunk of body ?? []) outgoing.write(chunk)
  outgoing.end()
}

const http: Host = (exported, options) => {
  const limit: Middleware = exported('rateLimiter', './node')(options)
  return onNode(async (incoming, outgoing) => {
    if (await limit(incoming, outgoing)) await answer(incoming, outgoing)
  })
}

const onExpress: Host = (exported, options) => {
  const server = express()
  server.use(exported('rateLimiter', './node')(options))
  server.use((incoming, outgoing) => answer(incoming as never, outgoing))
  return onNode(server as never)
}

const onFastify: Host = (exported, options) => {
  const server = fastify()
  server.register(exported('fastifyRateLimiter', './node')(options))
  server.after(() => {
    server.all('*', async (incoming, reply) => {
      const raw: Incoming = incoming.raw
      raw.rateLimit = incoming.getDecorator('rateLimit')
      const { status, headers, body } = await raw.call!.respond()
      reply.code(status).headers(Object.fromEntries(headers))
      return body ? Buffer.from(await new Response(body).arrayBuffer()) : ''
    })
  })
  const limiter = onNode((incoming, outgoing) => server.routing(incoming, outgoing))
  return Object.assign(limiter, { ready: server.ready() })
}

export const hosts = { app, gateway, hono, next, http, express: onExpress, fastify: onFastify }
export type HostName = keyof typeof hosts
