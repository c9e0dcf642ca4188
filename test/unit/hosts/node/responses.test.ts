/** The responses that apps write around a limiter. */
import { createServer } from 'node:http'
import express from 'express'
import fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { fastifyRateLimiter, rateLimiter } from '../../../../src/hosts/node/node.ts'
import {
  configOf,
  listen,
  listenHttp2,
  type Options,
  useDatabase,
} from '../../../support/node-servers.ts'

useDatabase()

const single = { name: 'per-ip', limit: 1, window: '1h', algorithm: 'fixed-window' } as const
const slots = { name: 'slow', algorithm: 'concurrency', limit: 1, window: '1h' } as const
const statusOf = async (url: string) => (await fetch(url)).status

/** Starts an app that sets two cookies before these limiters. */
const apps: [string, (...limiters: Options[]) => Promise<string>][] = [
  [
    'Express',
    (...limiters) => {
      const app = express()
      app.use((_request, response, next) => {
        response.cookie('a', '1').cookie('b', '2')
        next()
      })
      for (const one of limiters) app.use(rateLimiter(one))
      app.get('/', (_request, response) => void response.send('ok'))
      return listen(createServer(app))
    },
  ],
  [
    'Fastify',
    async (...limiters) => {
      const app = fastify()
      app.addHook('onRequest', async (_request, reply) => {
        reply.header('set-cookie', 'a=1; Path=/')
        reply.header('set-cookie', 'b=2; Path=/')
      })
      for (const one of limiters) await app.register(fastifyRateLimiter(one))
      app.get('/', () => 'ok')
      await app.ready()
      return listen(app.server)
    },
  ],
]

test.each(apps)(
  'In %s, cookies that are set before two limiters are sent once each, and the fields of both are joined, also with a refusal.',
  async (_, start) => {
    const all = configOf({ policies: [{ ...single, name: 'all', limit: 10 }] })
    const url = await start(all, configOf({ policies: [single] }))
    for (const status of [200, 429]) {
      const answer = await fetch(url)
      const { headers } = answer
      expect(answer.status).toBe(status)
      expect(headers.getSetCookie()).toEqual(['a=1; Path=/', 'b=2; Path=/'])
      expect(headers.get('ratelimit-policy')).toBe('"all";q=10;w=3600, "per-ip";q=1;w=3600')
    }
  },
)

describe('Express', () => {
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
    const send = await listenHttp2(async (request, response) => {
      if (await limit(request, response)) response.end('ok')
    })
    const authority = { ':authority': 'a.example' }
    expect((await send({ ...authority, host: 'b.example' }))[0]).toBe(400)
    expect((await send({ ...authority, host: 'a.example' }))[0]).toBe(200)
  })
})

describe('Fastify', () => {
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
