/** The middleware in an app that calls the origin of the gateway. */
import { Hono } from 'hono/tiny'
import { built, denialCache, rateLimiter } from '../../../../src/built/built.ts'
import type { WorkerEnv } from '../variants.ts'

function create(env: WorkerEnv) {
  const config = JSON.parse(env.settings)
  const app = new Hono()
  app.use(rateLimiter(built({ config, features: [denialCache], fits: [] })))
  app.all('*', (c) => fetch(new Request(config.origin, c.req.raw)))
  return app
}

let app: Hono | undefined

export default {
  fetch(request: Request, env: WorkerEnv, context: never) {
    app ??= create(env)
    return app.fetch(request, env, context)
  },
}
