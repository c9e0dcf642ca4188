import { Hono } from 'hono/tiny'
import { type ConfigOptions, rateLimiter } from '../../../../src/index.ts'
import type { WorkerEnv } from '../variants.ts'

/** Makes a Worker with the middleware in a Hono app whose handler does nothing. @param configure adds to the settings of the variant */
export function limited(configure: (settings: ConfigOptions) => ConfigOptions) {
  function create(settings: string) {
    const app = new Hono()
    app.use(rateLimiter(configure(JSON.parse(settings))))
    app.get('/', (c) => c.text('ok'))
    return app
  }

  let app: Hono | undefined
  return {
    fetch(request: Request, env: WorkerEnv, context: never) {
      app ??= create(env.settings)
      return app.fetch(request, env, context)
    },
  }
}
