/** The responses that apps write around a limiter. */
import { createServer } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import express from 'express'
import fastify from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fastifyRateLimiter, rateLimiter } from '../../../src/adapters/node.ts'
import { configOf, listen, useDatabase } from '../../support/node-servers.ts'

useDatabase()

const single = { name: 'per-ip', limit: 1, window: '1h', algorithm: 'fixed-window' } as const
const slots = { name: 'slow', algorithm: 'concurrency', limit: 1, window: '1h' } as const
const statusOf = async (url: string) => (await fetch(url)).status

describe('Express', () => {
  test('Cookies that are set before the limiter are sent once each, also with a refusal.', async () => {
    const app = express()
    app.use((_request, response, next) => {
      response.cookie('a', '1').cookie('b', '2')
      next()
    })
    app.use(rateLimiter(configOf({ policies: [single] })))
    app.get('/', (_request, response) => void response.send('ok'))
    const url = await listen(createServer(app))
    for (const status of [200, 429]) {
      const response = await fetch(url)
      expect(response.status).toBe(status)
      expect(response.headers.getSetCookie()).toEqual(['a=1; Path=/', 'b=2; Path=/'])
    }
  })

  test('If the app answers before the decision, the limiter calls neither next nor an error handler.', async () => {
    const app = express()
    const ended = Promise.withResolvers<() => void>()
    app.use((_request, response, next) => {
      setImmediate(() => response.status(503).write('Busy'))
      ended.resolve(() => response.end())
      next()
    })
    const limit = rateLimiter(configOf({ policies: [single] }))
    const calls: unknown[] = []
    const decided = Promise.withResolvers<void>()
    app.use((request, response, next) => {
      limit(request, response, (error) => {
        calls.push(error)
        next(error)
      }).then(decided.resolve)
    })
    const url = await listen(createServer(app))
    const response = await fetch(url)
    expect(response.status).toBe(503)
    await decided.promise
    ;(await ended.promise)()
    expect(await response.text()).toBe('Busy')
    expect(calls).toEqual([])
  })
})

describe('plain http', () => {
  test('A limiter after the headers were sent reports an error to next, and does not throw.', async () => {
    const limit = rateLimiter(configOf({ policies: [single] }))
    const url = await listen(
      createServer((request, response) => {
        response.flushHeaders()
        limit(request, response, (error) => response.end(String(error)))
      }),
    )
    expect(await (await fetch(url)).text()).toContain('Cannot set headers after they are sent')
  })
})

describe('HTTP/2', () => {
  test('A request with different hosts in :authority and Host gets 400.', async () => {
    const limit = rateLimiter(configOf({ policies: [single] }))
    const server = createHttp2Server(async (request, response) => {
      if (await limit(request, response)) response.end('ok')
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const session = connect(`http://127.0.0.1:${port}`)
    onTestFinished(() => {
      session.close()
      server.close()
    })
    const send = (host: string) =>
      new Promise((resolve) => {
        const stream = session.request({ ':authority': 'a.example', host })
        stream.on('response', (headers) => resolve(headers[':status'])).resume()
        stream.end()
      })
    expect(await send('b.example')).toBe(400)
    expect(await send('a.example')).toBe(200)
  })
})

describe('Fastify', () => {
  test('Cookies that are set before the limiter are sent once each, also with a refusal.', async () => {
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('set-cookie', 'a=1')
      reply.header('set-cookie', 'b=2')
    })
    await app.register(fastifyRateLimiter(configOf({ policies: [single] })))
    app.get('/', () => 'ok')
    for (const status of [200, 429]) {
      const response = await app.inject('/')
      expect(response.statusCode).toBe(status)
      expect(response.headers['set-cookie']).toEqual(['a=1', 'b=2'])
    }
    await app.close()
  })

  test('After a response with an invalid header, the slot is released and the process survives.', async () => {
    const app = fastify()
    await app.register(fastifyRateLimiter(configOf({ policies: [slots] })))
    app.get('/invalid', (_request, reply) => reply.header('x-name', '€').send('ok'))
    app.get('/', () => 'ok')
    await app.listen({ port: 0, host: '127.0.0.1' })
    const url = await listen(app.server)
    expect(await statusOf(`${url}/invalid`)).toBe(500)
    await expect.poll(() => statusOf(url)).toBe(200)
  })
})
