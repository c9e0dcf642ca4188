/** The limiters of an app on Node, on one Redis, each with the same client and the same limit. */
import express, { type RequestHandler } from 'express'
import { rateLimit } from 'express-rate-limit'
import { RedisStore } from 'rate-limit-redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { rateLimiter } from '../../../src/hosts/node/node.ts'
import { limits } from '../../../src/limits/limits.ts'
import { redis } from '../../../src/stores/redis.ts'

const client = await createClient({ url: process.env.REDIS_URL! }).connect()
const [LIMIT, SECONDS] = [1_000_000, 3_600]
const terms = { limit: LIMIT, window: SECONDS * 1000, deadline: '10s' } as const
const store = redis(client)
const flexible = () =>
  new RateLimiterRedis({
    ...{ storeClient: client, useRedisPackage: true, points: LIMIT, duration: SECONDS },
  })
const sluice = (algorithm: 'fixed-window' | 'sliding-window', batching = true) => {
  const quota = limits(
    { calls: { ...terms, algorithm } },
    { store, batching, namespace: `${algorithm.slice(0, 5)}-${batching ? 'a' : 'b'}` },
  )
  return async (key: string) => (await quota.limit('calls', key)).allowed
}

/** Calls by a key, which say if it may pass. */
export const calls: Record<string, () => (key: string) => Promise<unknown>> = {
  'bare INCR': () => (key) => client.incr(`incr:${key}`),
  'Sluice, fixed window': () => sluice('fixed-window'),
  'Sluice, sliding window': () => sluice('sliding-window'),
  'Sluice, not batched': () => sluice('fixed-window', false),
  'rate-limiter-flexible': () => {
    const limiter = flexible()
    return (key) => limiter.consume(key)
  },
  'rate-limit-redis': () => {
    const counter = new RedisStore({
      sendCommand: (...args: string[]) => client.sendCommand(args) as never,
    })
    counter.init!({ windowMs: terms.window } as never)
    return async (key) => (await counter.increment(key)).totalHits <= LIMIT
  },
}

/** Middleware of Express. A header stands for the address. */
export const apps: Record<string, () => RequestHandler> = {
  'Express alone': () => (_, __, next) => next(),
  'sluice/node': () =>
    rateLimiter({
      store,
      namespace: 'app',
      policies: [{ ...terms, name: 'calls', algorithm: 'fixed-window', key: 'header:x-key' }],
    }) as unknown as RequestHandler,
  'express-rate-limit with rate-limit-redis': () =>
    rateLimit({
      windowMs: terms.window,
      limit: LIMIT,
      standardHeaders: 'draft-8',
      legacyHeaders: false,
      keyGenerator: (request) => String(request.headers['x-key']),
      store: new RedisStore({
        prefix: 'app:',
        sendCommand: (...args: string[]) => client.sendCommand(args) as never,
      }),
    }),
  'rate-limiter-flexible in Express': () => {
    const limiter = flexible()
    return (request, response, next) => {
      limiter.consume(String(request.headers['x-key'])).then(
        ({ remainingPoints, msBeforeNext }) => {
          response.setHeader(
            'RateLimit',
            `"calls";r=${remainingPoints};t=${Math.ceil(msBeforeNext / 1000)}`,
          )
          next()
        },
        () => response.sendStatus(429),
      )
    }
  },
}

/** The app of a middleware. Returns its port. */
export async function listen(middleware: RequestHandler): Promise<number> {
  const app = express().use(middleware)
  app.get('/', (_, response) => void response.send('Welcome.'))
  return new Promise((resolve) => {
    const server = app.listen(0, '127.0.0.1', () => {
      resolve((server.address() as { port: number }).port)
    })
  })
}
