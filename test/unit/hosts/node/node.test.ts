/** What is particular to the servers of `sluice/node`. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
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
  release,
  useDatabase,
} from '../../../support/node-servers.ts'
import { raw, request } from '../../../support/raw-http.ts'

useDatabase()

const policy = { name: 'per-ip', limit: 10, window: '1h', algorithm: 'fixed-window' } as const
const single = { ...policy, limit: 1 }
const slots = { name: 'slow', algorithm: 'concurrency', limit: 1, window: '1h' } as const
const statusOf = async (url: string, init?: RequestInit) => (await fetch(url, init)).status

/** Sends a request, and disconnects when its handler runs. A wrong refund would arrive before this function returns. */
async function hangUp(url: string) {
  const client = new AbortController()
  const held = heldRequests()
  const answer = fetch(url, { signal: client.signal }).then(
    ({ status }) => status,
    () => 'none',
  )
  await Promise.race([
    answer.then((status) => expect(status).not.toBe(429)),
    vi.waitUntil(() => heldRequests() > held, 20_000),
  ])
  client.abort()
  await answer
  await sleep(100)
}

describe.each(nodeServers)('a limiter in %s', (_name, start) => {
  test('Without clientAddress it does not start, and the error names the remedy.', async () => {
    const { clientAddress: _, ...options } = configOf({ policies: [policy] })
    await expect(async () => start(options)).rejects.toThrow('forwardedFor')
    const byKey = { ...options, policies: [{ ...policy, key: 'header:x-user' as const }] }
    expect(await statusOf(await start(byKey))).toBe(200)
  })

  test('A client that hangs up counts until its handler answers, and then by that answer.', async () => {
    const url = await start(configOf({ policies: [{ ...single, countOnly: 401 }] }))
    await hangUp(`${url}/hold/200`)
    expect(await statusOf(url)).toBe(429)
    release()
    await vi.waitFor(async () => expect(await statusOf(url)).toBe(200), 20_000)
    await vi.waitFor(() => hangUp(`${url}/hold/401`), 20_000)
    release()
    await sleep(200) // a refund would arrive in this time
    expect(await statusOf(url)).toBe(429)
  })

  test.each(['/hold', '/begun'])(
    'At %s, a slot is held while the handler runs, also if its client has left.',
    async (path) => {
      const url = await start(configOf({ policies: [slots] }))
      await hangUp(url + path)
      expect(await statusOf(url)).toBe(429)
      release()
      await vi.waitFor(async () => expect(await statusOf(url)).toBe(200), 20_000)
    },
  )

  test.each([
    request('/', 'Host: a b'),
    request('/', 'Host: user@a.example'),
    request('/', 'Host: a.example/x?'),
    request('/', 'Host: a.example', 'Host: b.example'),
    request('http://b.example/', 'Host: a.example'),
    request('/a/../b', 'Host: a.example'),
    request('/a/%2E%2e/b', 'Host: a.example'),
    request('/a\\..\\b', 'Host: a.example'),
    request('/users/8\\x', 'Host: a.example'),
    request('/', 'Host: a%2eexample'),
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

  test.each(['4xx', 499, '200-499'] as const)(
    'A request whose client leaves during the decision reaches no handler, so with countOnly %s it does not count.',
    async (countOnly) => {
      const client = new AbortController()
      const key = async (context: unknown) => {
        const { url, socket } = context as IncomingMessage
        if (url === '/late') {
          client.abort()
          await once(socket, 'close')
        }
        return 'all'
      }
      const limit = rateLimiter(configOf({ policies: [{ ...single, key, countOnly }] }))
      const paths: string[] = []
      const server = createServer(async (request, response) => {
        if (!(await limit(request, response))) return
        paths.push(request.url!)
        response.writeHead(404).end()
      })
      const url = await listen(server)
      await fetch(`${url}/late`, { signal: client.signal }).catch(() => {})
      await vi.waitFor(async () => expect(await statusOf(url)).toBe(404), 20_000)
      expect(paths).toEqual(['/'])
    },
  )

  test('An invalid configuration is a ConfigError at creation.', () => {
    expect(() => rateLimiter({ policies: [{ ...policy, limit: -1 }] })).toThrow(ConfigError)
  })
})

describe('a limiter in plain http', () => {
  test('A limiter in the event upgrade admits WebSockets up to the limit, and answers the next one with 429.', async () => {
    const limit = rateLimiter(configOf({ policies: [{ ...policy, limit: 2 }] }))
    const server = createServer()
    server.on('upgrade', async (incoming, socket: Socket) => {
      const response = new ServerResponse(incoming)
      response.assignSocket(socket)
      if (!(await limit(incoming, response))) return socket.end()
      response.detachSocket(socket)
      socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n')
    })
    const url = await listen(server)
    const upgrade = request('/', 'Host: a.example', 'Upgrade: websocket').replace(
      'close',
      'upgrade',
    )
    const answers = []
    for (let count = 0; count < 3; count++) answers.push(await raw(url, upgrade, false))
    expect(answers.map((one) => one.slice(9, 12))).toEqual(['101', '101', '429'])
    expect(answers[2]).toMatch(/retry-after: \d+/i)
    expect(answers[2]).toContain('"title":"Quota exceeded"')
  })

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
