/** What is particular to the servers of `sluice/node`. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import express from 'express'
import fastify from 'fastify'
import { describe, expect, test, vi } from 'vitest'
import type { Decision } from '../../../../src/core/base/decision.ts'
import { ConfigError } from '../../../../src/core/base/errors.ts'
import { fastifyRateLimiter, rateLimiter } from '../../../../src/hosts/node/node.ts'
import {
  configOf,
  heldRequests,
  listen,
  listenHttp2,
  nodeServers,
  useDatabase,
} from '../../../support/node-servers.ts'
import { raw, request } from '../../../support/raw-http.ts'

useDatabase()

const policy = { name: 'per-ip', limit: 10, window: '1h', algorithm: 'fixed-window' } as const
const single = { ...policy, limit: 1 }
const statusOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).status

describe.each(nodeServers)('a limiter in %s', (_name, start) => {
  test('Without clientAddress it does not start, and the error names the remedy.', async () => {
    const { clientAddress: _, ...options } = configOf({ policies: [policy] })
    await expect(async () => start(options)).rejects.toThrow('forwardedFor')
    const byKey = { ...options, policies: [{ ...policy, key: 'header:x-user' as const }] }
    expect(await statusOf(await start(byKey))).toBe(200)
  })

  test('A client that disconnects before a status is sent counts as 499.', async () => {
    const url = await start(configOf({ policies: [{ ...single, countOnly: 499 }] }))
    for (let count = 0; count < 3; count++) {
      await vi.waitFor(async () => expect(await statusOf(url)).toBe(200), 5_000)
    }
    await vi.waitFor(
      async () => {
        await fetch(`${url}/hold`, { signal: AbortSignal.timeout(100) }).catch(() => {})
        await sleep(300) // a refund would arrive in this time
        expect(await statusOf(url)).toBe(429)
      },
      { timeout: 5_000 },
    )
  })

  test('A slot is released when the client disconnects before a status is sent.', async () => {
    const slots = { name: 'slow', algorithm: 'concurrency', limit: 1, window: '1h' } as const
    const url = await start(configOf({ policies: [slots] }))
    const client = new AbortController()
    const held = fetch(`${url}/hold`, { signal: client.signal }).catch(() => 'aborted')
    await expect.poll(heldRequests).toBe(1)
    expect(await statusOf(url)).toBe(429)
    client.abort()
    expect(await held).toBe('aborted')
    await vi.waitFor(async () => expect(await statusOf(url)).toBe(200), 5_000)
  })

  test.each([
    request('/', 'Host: a b'),
    request('/', 'Host: user@a.example'),
    request('/', 'Host: a.example/x?'),
    request('/', 'Host: a.example', 'Host: b.example'),
    request('http://b.example/', 'Host: a.example'),
    request('/a/../b', 'Host: a.example'),
    request('/a/%2E%2e/b', 'Host: a.example'),
    request('/a\\..\\b', 'Host: a.example'),
    request('/a#b', 'Host: a.example'),
    request('*', 'Host: a.example').replace('GET', 'OPTIONS'),
  ])('The request %j gets 400.', async (bytes) => {
    const url = await start(configOf({ policies: [single] }))
    expect(await raw(url, bytes)).toMatch(/^HTTP\/1.1 400 /)
    expect(await statusOf(url)).toBe(200)
  })

  test('A TRACE request gets 405.', async () => {
    const url = await start(configOf({ policies: [single] }))
    const answer = await raw(url, request('/', 'Host: a.example').replace('GET', 'TRACE'))
    expect(answer).toMatch(/^HTTP\/1.1 40[45] /) // Fastify answers 404 itself.
    expect(answer).not.toMatch(/^allow:/im)
    expect(await statusOf(url)).toBe(200)
  })

  test('A request with a whole URL as its target, and one without a host in HTTP/1.0, are counted.', async () => {
    const url = await start(configOf({ policies: [{ ...policy, limit: 2 }] }))
    expect(await raw(url, request('http://a.example/x', 'Host: a.example'), false)).toContain(
      ' 200 ',
    )
    expect(await raw(url, 'GET / HTTP/1.0\r\n\r\n', false)).toContain(' 200 ')
    expect(await statusOf(url)).toBe(429)
  })
})

describe('a limiter in Express', () => {
  test('In a mounted router, a policy applies to the whole path.', async () => {
    const app = express()
    const router = express.Router()
    router.use(rateLimiter(configOf({ policies: [{ ...single, match: { path: '/api/login' } }] })))
    router.get('/*path', (_request, response) => void response.send('ok'))
    app.use('/api', router)
    const url = await listen(createServer(app))
    expect(await statusOf(`${url}/api/login`)).toBe(200)
    expect(await statusOf(`${url}/api/login`)).toBe(429)
    expect(await statusOf(`${url}/api/other`)).toBe(200)
  })

  test('A key function receives the request, and req.rateLimit is the decision.', async () => {
    const app = express()
    app.use((request, _response, next) => {
      Object.assign(request, { user: request.query.user })
      next()
    })
    app.use(
      rateLimiter({
        ...configOf({ policies: [] }),
        policies: [{ ...policy, key: (request: { user?: string }) => request.user }],
      }),
    )
    app.get('/', (request, response) => void response.json(request.rateLimit))
    const url = await listen(createServer(app))
    const remaining = async (user: string) => {
      const decision = (await (await fetch(`${url}/?user=${user}`)).json()) as Decision
      return decision.limits[0]?.remaining
    }
    expect(await remaining('ada')).toBe(9)
    expect(await remaining('ada')).toBe(8)
    expect(await remaining('bob')).toBe(9)
  })

  test('A refusal keeps the CORS fields of an earlier middleware, and exposes the fields of the limiter.', async () => {
    const app = express()
    app.use((_request, response, next) => {
      response.set({ 'Access-Control-Allow-Origin': 'https://a.example', Vary: 'Origin' })
      next()
    })
    app.use(rateLimiter(configOf({ policies: [single] })))
    app.get('/', (_request, response) => void response.send('ok'))
    const url = await listen(createServer(app))
    for (const status of [200, 429]) {
      const response = await fetch(url)
      const { headers } = response
      expect(response.status).toBe(status)
      expect(headers.get('access-control-allow-origin')).toBe('https://a.example')
      expect(headers.get('vary')).toBe('Origin')
      expect(headers.get('access-control-expose-headers')).toContain('RateLimit')
    }
  })

  test('A request whose client left before the check is not counted, and reaches no handler.', async () => {
    const app = express()
    const client = new AbortController()
    const left = Promise.withResolvers<void>()
    app.use(async (request, response, next) => {
      if (request.path === '/late') {
        client.abort()
        await once(response, 'close')
        setImmediate(left.resolve)
      }
      next()
    })
    app.use(rateLimiter(configOf({ policies: [single] })))
    const paths: string[] = []
    app.use((request, response) => {
      paths.push(request.path)
      response.send('ok')
    })
    const url = await listen(createServer(app))
    await fetch(`${url}/late`, { signal: client.signal }).catch(() => {})
    await left.promise
    expect(await statusOf(url)).toBe(200)
    expect(await statusOf(url)).toBe(429)
    expect(paths).toEqual(['/'])
  })

  test('An invalid configuration is a ConfigError at creation.', () => {
    expect(() => rateLimiter({ policies: [{ ...policy, limit: -1 }] })).toThrow(ConfigError)
  })
})

describe('a limiter in plain http', () => {
  test('With next, an error goes to next, and a refused request does not call it.', async () => {
    const errors: unknown[] = []
    const clientAddress = () => {
      throw new ConfigError([])
    }
    const limit = rateLimiter(configOf({ policies: [policy], clientAddress }))
    const url = await listen(
      createServer((request: IncomingMessage, response) => {
        limit(request, response, (error) => {
          errors.push(error)
          response.writeHead(500).end()
        })
      }),
    )
    expect(await statusOf(url)).toBe(500)
    expect(errors).toEqual([expect.any(ConfigError)])
  })

  test('Requests of HTTP/2 are limited.', async () => {
    const limit = rateLimiter(configOf({ policies: [{ ...single, match: { host: 'a.example' } }] }))
    const send = await listenHttp2(async (request, response) => {
      if (await limit(request, response)) response.end('ok')
    })
    const status = async () => (await send({ ':authority': 'a.example' }))[0]
    expect([await status(), await status()]).toEqual([200, 429])
  })
})

describe('a limiter in Fastify', () => {
  test('It applies to the plugin that registers it, and not outside.', async () => {
    const app = fastify()
    await app.register(async (inner) => {
      await inner.register(fastifyRateLimiter(configOf({ policies: [single] })))
      inner.get('/inner', (request) => request.getDecorator<Decision>('rateLimit'))
    })
    app.get('/outer', () => 'ok')
    expect((await app.inject('/inner')).json()).toMatchObject({ allowed: true })
    const refused = await app.inject('/inner')
    expect(refused.statusCode).toBe(429)
    expect(refused.headers['content-type']).toMatch(/^application\/problem\+json/)
    for (let count = 0; count < 2; count++) {
      expect((await app.inject('/outer')).statusCode).toBe(200)
    }
    await app.close()
  })
})
