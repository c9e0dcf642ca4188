/** Clients that leave while their handler runs: an outcome that is not known counts, and a slot lasts as long as its handler. */
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { connect as connectHttp2, constants, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { serve } from '@hono/node-server'
import express from 'express'
import fc from 'fast-check'
import fastify from 'fastify'
import { Hono } from 'hono'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { rateLimiter as honoRateLimiter } from '../../../../src/hosts/app/middleware.ts'
import { fastifyRateLimiter, rateLimiter } from '../../../../src/hosts/node/node.ts'
import { isLong } from '../../../support/long.ts'
import { configOf, type Options, useDatabase } from '../../../support/node-servers.ts'

useDatabase()

const SLOTS = 2
const ATTEMPTS = 3
const policies = [
  { name: 'slots', algorithm: 'concurrency', limit: SLOTS, window: '1h' },
  { name: 'guesses', algorithm: 'fixed-window', limit: ATTEMPTS, window: '1h', countOnly: 401 },
] as const

/** What a client and its handler do. */
interface Plan {
  /** The response. A handler that hangs gives none. */
  outcome: 200 | 401 | 'throw' | 'hang'
  /** True if the response begins before it ends. */
  begins: boolean
  /** When the client disconnects. */
  leaves: 'at once' | 'early' | 'late' | 'never'
}

const plans: fc.Arbitrary<Plan> = fc.record({
  outcome: fc.constantFrom<Plan['outcome'][]>(200, 401, 'throw', 'hang'),
  begins: fc.boolean(),
  leaves: fc.constantFrom('at once', 'early', 'late', 'never'),
})

/** The handler of one client. The test tells it when to go on. */
class Handler {
  readonly plan: Plan
  isStarted = false
  isRunning = false
  #go = Promise.withResolvers<void>()

  constructor(plan: Plan) {
    this.plan = plan
  }

  get status() {
    return this.plan.outcome === 401 ? 401 : 200
  }

  /** Unless it answers with an uncounted status, its attempt counts. */
  get counts() {
    const { outcome } = this.plan
    return this.isStarted && (this.isRunning || outcome === 401 || outcome === 'hang')
  }

  go() {
    this.#go.resolve()
    this.#go = Promise.withResolvers()
  }

  /** @param begin begins the response */
  async run(begin: () => void): Promise<void> {
    this.isStarted = true
    this.isRunning = true
    onStart()
    if (this.plan.begins) {
      await this.#go.promise
      begin()
    }
    await this.#go.promise
    if (this.plan.outcome === 'hang') await new Promise(() => {})
    this.isRunning = false
    if (this.plan.outcome === 'throw') throw new Error('a handler that throws')
  }
}

let handlers: Handler[] = []
let faults: string[] = []
/** The law, at each moment at which it could be broken. */
function onStart() {
  const running = handlers.filter((one) => one.isRunning).length
  const counted = handlers.filter((one) => one.counts).length
  if (running > SLOTS) faults.push(`${running} handlers run with ${SLOTS} slots`)
  if (counted > ATTEMPTS) faults.push(`${counted} attempts with a limit of ${ATTEMPTS}`)
}
const handlerOf = (path: string | undefined) => handlers[Number(path?.slice(1))]

/** A server whose handlers are written as its users write them. */
type Start = (options: Options) => Server | Promise<Server>

interface Raw {
  statusCode: number
  readonly headersSent: boolean
  writeHead: (status: number) => unknown
  write: (text: string) => unknown
  end: (text: string) => unknown
}

/** Answers a request of `http` or HTTP/2. */
async function answer(path: string | undefined, response: Raw) {
  const handler = handlerOf(path)
  if (!handler) return response.end('ok')
  await handler.run(() => {
    response.writeHead(handler.status)
    response.write('first ')
  })
  if (!response.headersSent) response.writeHead(handler.status)
  response.end('ok')
}

/** Answers after an error too. */
async function answerAlways(path: string | undefined, response: Raw) {
  try {
    await answer(path, response)
  } catch {
    if (!response.headersSent) response.statusCode = 500
    response.end('failed')
  }
}

const servers: [string, Start][] = [
  [
    'http',
    (options) => {
      const limit = rateLimiter(options)
      return createServer(async (request, response) => {
        if (await limit(request, response)) await answerAlways(request.url, response)
      })
    },
  ],
  [
    'HTTP/2',
    (options) => {
      const limit = rateLimiter(options)
      return createHttp2Server(async (request, response) => {
        if (await limit(request, response)) await answerAlways(request.url, response)
      }) as unknown as Server
    },
  ],
  [
    'Express',
    (options) => {
      const app = express().set('env', 'test') // which prints no errors
      app.use(rateLimiter(options))
      app.use(async (request, response) => {
        const handler = handlerOf(request.path)
        await handler?.run(() => void response.status(handler.status).write('first '))
        if (response.headersSent) response.end('ok')
        else response.status(handler?.status ?? 200).json({})
      })
      return createServer(app)
    },
  ],
  [
    'Fastify',
    async (options) => {
      const app = fastify()
      await app.register(fastifyRateLimiter(options))
      app.get('/*', async (request, reply) => {
        const handler = handlerOf(request.url)
        if (!handler?.plan.begins) {
          await handler?.run(() => {})
          return reply.code(handler?.status ?? 200).send('ok')
        }
        reply.hijack()
        await answerAlways(request.url, reply.raw)
      })
      await app.ready()
      return app.server
    },
  ],
  [
    'Hono on Node',
    (options) => {
      const app = new Hono()
      app.use(honoRateLimiter(options))
      app.onError((_, c) => c.text('failed', 500))
      app.get('/*', async (c) => {
        const handler = handlerOf(c.req.path)
        await handler?.run(() => {})
        return c.text('ok', handler?.status ?? 200)
      })
      const { fetch } = app
      return serve({
        fetch,
        port: 0,
        hostname: '127.0.0.1',
        overrideGlobalObjects: false,
      }) as Server
    },
  ],
]

/** Starts a server. Returns a function that opens a connection, with the server's end of it. */
async function opening(start: Start, options: Options = { policies: [] }) {
  const server = await start(options)
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return async (path: string) => {
    const client = connect(port, '127.0.0.1').on('error', () => {})
    const connected = once(server, 'connection') as Promise<[Socket]>
    return { client, path, served: (await connected)[0], port }
  }
}
type Opened = Awaited<ReturnType<Awaited<ReturnType<typeof opening>>>>

/** Sends a request, and returns a promise of its status. */
function send({ client, path, port }: Opened, isHttp2: boolean): Promise<number> {
  if (isHttp2) {
    const session = connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => client })
    const sent = session.on('error', () => {}).request({ ':path': path })
    sent.on('error', () => {}).resume()
    return new Promise((resolve) => {
      sent.on('response', ({ ':status': status }) => resolve(Number(status)))
    })
  }
  client.write(`GET ${path} HTTP/1.1\r\nHost: a.example\r\n\r\n`)
  return new Promise((resolve) => {
    client.once('data', (bytes) => resolve(Number(String(bytes).slice(9, 12))))
  })
}

describe.each(servers)('%s', (name, start) => {
  const isHttp2 = name === 'HTTP/2'

  test('For any clients that leave at any moment, no more attempts are made than the limit, and no more handlers run than there are slots.', async () => {
    const order = fc.array(fc.nat(), { minLength: 40, maxLength: 40 })
    const schedules = fc.tuple(fc.array(plans, { minLength: 3, maxLength: 7 }), order)
    await fc.assert(
      fc.asyncProperty(schedules, async ([all, choices]) => {
        handlers = all.map((plan) => new Handler(plan))
        faults = []
        const open = await opening(start, configOf({ policies: [...policies] }))
        const steps = handlers.map((handler, index) => stepsOf(handler, `/${index}`, open, isHttp2))
        for (let turn = 0; steps.some((own) => own.length > 0); turn++) {
          const open = steps.filter((own) => own.length > 0)
          await open[choices[turn % choices.length]! % open.length]!.shift()!()
        }
        expect(faults).toEqual([])
        const hanging = handlers.filter((one) => one.isRunning).length
        const counted = handlers.filter((one) => one.counts).length
        await vi.waitFor(
          async () =>
            expect(await roomOf(open, isHttp2)).toBe(
              Math.min(SLOTS - hanging, ATTEMPTS - counted) > 0,
            ),
          { timeout: 20_000, interval: 20 },
        )
      }),
      { numRuns: isLong ? 60 : 12, endOnFailure: true },
    )
  }, 120_000)
})

/** The steps of a client and its handler, in order. Each one ends when the server has noticed it. */
function stepsOf(
  handler: Handler,
  path: string,
  open: (path: string) => Promise<Opened>,
  isHttp2: boolean,
): (() => Promise<unknown>)[] {
  const { outcome, begins, leaves } = handler.plan
  let opened: Opened
  let status: Promise<number>
  const leave = async () => {
    const { client, served } = opened
    client.destroy()
    await expect.poll(() => served.closed, { interval: 1 }).toBe(true)
  }
  const go = async () => {
    handler.go()
    await new Promise(setImmediate)
  }
  return [
    async () => {
      opened = await open(path)
      status = send(opened, isHttp2)
      if (leaves === 'at once') return leave()
      await vi.waitUntil(() => handler.isStarted || Promise.race([status, false]), {
        interval: 1,
        timeout: 20_000,
      })
    },
    ...(leaves === 'early' ? [leave] : []),
    ...(begins ? [go] : []),
    ...(leaves === 'late' ? [leave] : []),
    ...(outcome === 'hang' ? [] : [go]),
  ]
}

/** Reports whether a further request passes. */
async function roomOf(open: (path: string) => Promise<Opened>, isHttp2: boolean) {
  const opened = await open('/probe')
  const status = await send(opened, isHttp2)
  opened.client.destroy()
  return status === 200
}

describe('The slot of a handler for plain http', () => {
  const slots = { ...policies[0], limit: 1 }
  const endless = () =>
    Readable.from(
      (async function* () {
        for (;;) yield await new Promise((resolve) => setImmediate(resolve, 'chunk '))
      })(),
    )

  /** Sends a request to this handler, and disconnects when the handler says so. Returns whether the slot is free within this time, ms. */
  async function isFreeAfter(
    handle: (response: ServerResponse, left: () => Promise<void>) => unknown,
    timeout = 20_000,
  ): Promise<boolean> {
    const limit = rateLimiter(configOf({ policies: [slots] }))
    let opened: Opened | undefined
    const left = async () => {
      opened!.client.destroy()
      await expect.poll(() => opened!.served.closed, { interval: 1 }).toBe(true)
    }
    const done = Promise.withResolvers<void>()
    const open = await opening(() =>
      createServer(async (request, response) => {
        if (!(await limit(request, response))) return
        if (request.url === '/probe') return response.end('ok')
        await handle(response, left)
        done.resolve()
      }),
    )
    opened = await open('/')
    send(opened, false)
    await done.promise
    return vi.waitUntil(() => roomOf(open, false), { timeout, interval: 20 }).catch(() => false)
  }

  test.each<[string, (response: ServerResponse, left: () => Promise<void>) => unknown]>([
    ['ends its response', (response) => response.end()],
    ['destroys its response', (response) => response.destroy()],
    ['destroys its response with an error', (response) => response.destroy(new Error('no'))],
    [
      'closes the connection in a response that has begun',
      (response) => void (response.write('a') && response.socket!.destroy()),
    ],
    [
      'ends its response after its client has left',
      async (response, left) => {
        await left()
        response.end('late')
      },
    ],
    [
      'destroys its response after its client has left',
      async (response, left) => {
        await left()
        response.destroy()
      },
    ],
    [
      'closes the connection after its client has left',
      async (response, left) => {
        response.write('a')
        const { socket } = response
        await left()
        socket!.destroy()
      },
    ],
    [
      'pipes a stream, and its client leaves',
      async (response, left) => {
        const piped = once(response, 'pipe')
        endless().pipe(response)
        await piped
        response.flushHeaders()
        await left()
      },
    ],
    [
      'pipes a stream after its client has left',
      async (response, left) => {
        await left()
        endless().pipe(response)
      },
    ],
    [
      'sends events, and hears that its client leaves',
      async (response, left) => {
        response.write('data: 1\n\n')
        response.req.on('close', () => {})
        await left()
      },
    ],
  ])('is released if the handler %s.', async (_, handle) => {
    expect(await isFreeAfter(handle)).toBe(true)
  })

  test('is held while the handler runs on, also if a timeout has closed its connection.', async () => {
    const runsOn = (response: ServerResponse) => once(response.setTimeout(20), 'close')
    expect(await isFreeAfter(runsOn, 500)).toBe(false)
  })
})

test.each([
  [200, true],
  [401, false],
])(
  'After a client has reset its stream of HTTP/2, the answer %i of the handler leaves room for another: %s.',
  async (status, isRefunded) => {
    const limit = rateLimiter(configOf({ policies: [{ ...policies[1], limit: 1 }] }))
    const started = Promise.withResolvers<void>()
    const open = await opening(
      () =>
        createHttp2Server(async (request, response) => {
          if (!(await limit(request, response))) return
          if (request.url === '/probe') return void response.end()
          started.resolve()
          await once(response, 'close')
          response.writeHead(status).end('late')
        }) as unknown as Server,
    )
    const { client } = await open('/')
    const session = connectHttp2('http://a.example', { createConnection: () => client })
    const sent = session.request({ ':path': '/' }).on('error', () => {})
    await started.promise
    sent.close(constants.NGHTTP2_CANCEL)
    await once(sent, 'close')
    const timeout = isRefunded ? 20_000 : 500
    const isFree = vi.waitUntil(() => roomOf(open, true), { timeout, interval: 20 })
    expect(await isFree.catch(() => false)).toBe(isRefunded)
  },
)

test('In Hono, a client that has left before the limiter runs causes no error, and its handler does not run.', async () => {
  const errors: unknown[] = []
  const left = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<number>()
  let runs = 0
  const app = new Hono()
  app.onError((error, c) => {
    errors.push(error)
    return c.text('failed', 500)
  })
  app.use(async (c, next) => {
    await left.promise
    await next()
    ended.resolve(c.res.status)
  })
  app.use(honoRateLimiter(configOf({ policies: [policies[1]] })))
  app.get('/', (c) => {
    runs += 1
    return c.text('ok')
  })
  const { fetch } = app
  const settings = { fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false }
  const open = await opening(() => serve(settings) as Server)
  const opened = await open('/')
  send(opened, false)
  opened.client.end()
  await expect.poll(() => opened.served.closed, { interval: 1 }).toBe(true)
  left.resolve()
  expect(await ended.promise).toBe(499)
  expect([errors, runs]).toEqual([[], 0])
})

test.each([
  ['before the limiter runs', 'onRequest'],
  ['while a hook delays its refusal', 'onSend'],
])('In Fastify, no handler runs for a client that leaves %s.', async (_, hook) => {
  const arrived = Promise.withResolvers<void>()
  const left = Promise.withResolvers<void>()
  const runs: string[] = []
  const open = await opening(async () => {
    const app = fastify()
    app.addHook(hook as 'onRequest', async ({ url }) => {
      if (url !== '/leaves') return
      arrived.resolve()
      await left.promise
    })
    const single = { name: 'single', algorithm: 'fixed-window', limit: 1, window: '1h' } as const
    await app.register(fastifyRateLimiter(configOf({ policies: [single] })))
    app.get('/*', async ({ url }) => {
      runs.push(url)
      return 'ok'
    })
    await app.ready()
    return app.server
  })
  expect(await send(await open('/first'), false)).toBe(200)
  const opened = await open('/leaves')
  send(opened, false)
  await arrived.promise
  opened.client.destroy()
  await expect.poll(() => opened.served.closed, { interval: 1 }).toBe(true)
  left.resolve()
  expect(await send(await open('/last'), false)).toBe(429)
  expect(runs).toEqual(['/first'])
})
