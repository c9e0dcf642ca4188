/** Like ours.ts, with several databases. */
import { Hono } from 'hono/tiny'
import { rateLimiter } from '../../../src/index.ts'
import { shards } from '../../../src/shards/index.ts'
import type { WorkerEnv } from '../variants.ts'

function create(settings: string) {
  const { shards: written, ...config } = JSON.parse(settings)
  const app = new Hono()
  app.use(rateLimiter({ ...config, shards: shards(written.names) }))
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
