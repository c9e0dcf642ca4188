/** `hono-rate-limiter` on its own RedisStore over `@upstash/redis`, one middleware for each quota. */
import { Redis } from '@upstash/redis/cloudflare'
import { Hono } from 'hono/tiny'
import { RedisStore, rateLimiter } from 'hono-rate-limiter'
import type { Quota } from '../variants.ts'

type Env = Record<'url' | 'token' | 'settings', string>

function create({ url, token, settings }: Env) {
  const { quotas }: { quotas: Quota[] } = JSON.parse(settings)
  // Its store loads scripts when it is made, which Workers allow within a request only.
  const client = new Redis({ url, token })
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
  fetch(request: Request, env: Env, context: never) {
    app ??= create(env)
    return app.fetch(request, env, context)
  },
}
