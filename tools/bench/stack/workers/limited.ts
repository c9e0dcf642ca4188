import { Hono } from 'hono/tiny'
import { type Built, built, denialCache, local, rateLimiter } from '../../../../src/built/built.ts'
import type { WorkerEnv } from '../variants.ts'

type Config = Built['config']

/**
 * Makes a Worker with the middleware in a Hono app whose handler does nothing.
 * @param configure adds to the built settings of the variant
 * @param more features that the settings need besides those of most variants. Defaults to none
 */
export function limited(
  configure: (settings: Config) => Config = (settings) => settings,
  more: Built['features'] = [],
) {
  const features = [denialCache, local, ...more]

  function create(settings: string) {
    const app = new Hono()
    const config = configure(JSON.parse(settings))
    app.use(rateLimiter(built({ config, features, fits: [] })))
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
