/** Like ours.ts, with options that the Worker parses. */
import { Hono } from 'hono/tiny'
import { rateLimiter } from '../../../../src/index.ts'
import type { WorkerEnv } from '../variants.ts'

function create(settings: string) {
  const app = new Hono()
  app.use(rateLimiter(JSON.parse(settings)))
  app.get('/', (c) => c.text('ok'))
  return app
}

let app: Hono | undefined

export default {
  fetch(request: Request, env: WorkerEnv, context: never) {
    app ??= create(env.settings)
    return app.fetch(request, env, context)
  },
}
