/** `hono-rate-limiter` with its RedisStore and `@upstash/redis`, one middleware for each quota. */
import { Redis } from '@upstash/redis/cloudflare'
import { Hono } from 'hono/tiny'
import { RedisStore, rateLimiter } from 'hono-rate-limiter'
import type { Quota, WorkerEnv } from '../variants.ts'

function create(env: WorkerEnv) {
  const { quotas }: { quotas: Quota[] } = JSON.parse(env.settings)
  // The store loads scripts when it is created, which Workers allow only within a request.
  const client = Redis.fromEnv(env)
  const app = new Hono()
  for (const [index, { limit, windowMs }] of quotas.entries()) {
    app.use(
      rateLimiter({
        limit,
        windowMs,
        keyGenerator: (c) => c.req.header('cf-connecting-ip') ?? '',
        store: new RedisStore({ client, ...(index > 0 && { prefix: `hrl:${index}:` }) }),
      }),
    )
  }
  app.get('/', (c) => c.text('ok'))
  return app
}

let app: Hono | undefined

export default {
  fetch(request: Request, env: WorkerEnv, context: never) {
    app ??= create(env)
    return app.fetch(request, env, context)
  },
}
