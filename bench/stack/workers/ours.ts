/** The middleware in a Hono app whose handler does nothing. */
import { Hono } from 'hono/tiny'
import { rateLimiter } from '../../../src/index.ts'

type Env = Record<'url' | 'token' | 'settings', string>

function create(settings: string) {
  const app = new Hono()
  app.use(rateLimiter(JSON.parse(settings)))
  app.get('/', (c) => c.text('ok'))
  return app
}

let app: Hono | undefined

export default {
  fetch(request: Request, env: Env, context: never) {
    app ??= create(env.settings)
    const one = { UPSTASH_REDIS_REST_URL: env.url, UPSTASH_REDIS_REST_TOKEN: env.token }
    const bindings = { ...env, ...one }
    return app.fetch(request, bindings, context)
  },
}
