import { apiLua } from '../../api/lua.ts'
import { createRouter } from '../../api/router.ts'
import type { Feature } from '../../core/feature.ts'
import { operators } from './operators.ts'

/** Options of `endpoints`. */
export interface EndpointsOptions {
  /**
   * The description of the decision API, from `sluice/openapi.json`, to answer `GET /_sluice/v1/openapi.json`. It adds 6 KiB to the
   * compressed Worker. Defaults to none, so that the path does not exist.
   */
  openapi?: object
}

/**
 * Lets the limiter of an app answer the paths under `/_sluice/` that the Worker of `createGateway` answers: `health`, `ready`, and with a
 * token the decision API, `stats` and `metrics` of `observe()`, and the calls of `sluice dashboard`. The limiter must run for these paths.
 * An endpoint whose token the environment lacks does not exist, so such a request goes to the app.
 *
 * A key function gets the described request, and not the request of the server.
 * @example
 * app.use(rateLimiter({ policies: [{ name: 'per-ip', limit: 100, window: '1m' }], use: [endpoints(), observe()] }))
 */
export const endpoints = ({ openapi }: EndpointsOptions = {}): Feature => ({
  name: 'endpoints',
  compile(program) {
    let route: ReturnType<typeof createRouter> | undefined
    return {
      endpoints: operators().flatMap(({ compile }) => compile(program).endpoints ?? []),
      lua: apiLua,
      handlers: [
        (path, request, runtime, limiter) => {
          route ??= createRouter(limiter, openapi)
          return route(request, path, { ...runtime, contextOf: async (described) => described })
        },
      ],
    }
  },
})
