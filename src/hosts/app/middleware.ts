import type { Context, Env, MiddlewareHandler } from 'hono'
import type { Decision } from '../../core/base/decision.ts'
import { withRedisUrl } from '../../core/base/redis-url.ts'
import type { AppOptions } from '../../core/config/options.ts'
import type { Limiter } from '../../core/feature.ts'
import { checkRequest, failed } from '../../core/pipeline.ts'
import type { Limits } from '../../limits/door.ts'
import { policyDoor } from '../../limits/policies.ts'
import { createAppLimiter } from './app-limiter.ts'
import { hasLeft, runtimeOf } from './hono-runtime.ts'

/** What handlers behind the middleware have in `c.var`. */
interface DecidedRequestVariables {
  Variables: {
    /** The decision of `rateLimiter` on this request. */
    rateLimit: Decision
    /** Decides policies of the configuration by name and key. They count what requests with that key count. */
    sluice: Limits
  }
}

type Middleware<E extends Env> = MiddlewareHandler<
  unknown extends E ? DecidedRequestVariables : E & DecidedRequestVariables
>

/** `rateLimiter` for another form of a configuration. */
// biome-ignore lint/suspicious/noExplicitAny: fits an app of any environment, like Hono's own handlers
export type AppMiddleware<Options> = <E extends Env = any>(options: Options) => Middleware<E>

/**
 * Creates a Hono middleware that limits requests. It answers 429 above a limit, and adds the `RateLimit` fields to other responses.
 * The decision is in `c.var.rateLimit`, and `c.var.sluice.limit(name, key)` decides more. Both are typed for handlers that are chained behind the middleware. Credentials come from `c.env` (see {@link Bindings}).
 * @throws {ConfigError} immediately, if the configuration is invalid
 * @example
 * const app = new Hono()
 *   .use(rateLimiter({ policies: [{ name: 'per-user', limit: 100, window: '1m', key: (c) => c.get('user').id }] }))
 *   .get('/', (c) => c.json(c.var.rateLimit))
 */
// biome-ignore lint/suspicious/noExplicitAny: fits an app of any environment, like Hono's own handlers
export function rateLimiter<E extends Env = any>(options: AppOptions<Context<E>>): Middleware<E> {
  return middlewareOf(createAppLimiter(withRedisUrl(options)))
}

/** @internal */
export function middlewareOf(limiter: Limiter): MiddlewareHandler {
  return async function rateLimiter(c, next) {
    if (hasLeft(c)) return new Response(null, { status: 499 }) // as servers log it
    const runtime = runtimeOf(c)
    c.set('sluice', policyDoor(limiter, runtime))
    const checking = checkRequest(limiter, c.req.raw, runtime)
    const checked = checking instanceof Promise ? await checking : checking
    const { decision, passes } = checked
    let response: Response
    if (passes) {
      c.set('rateLimit', decision)
      try {
        await next()
      } catch (error) {
        // Hono itself answers each `Error` of a handler, so only other values arrive here.
        checked.settle(failed())
        throw error
      }
      response = checked.finish(c.res)
    } else {
      const refusing = checked.refuse()
      response = refusing instanceof Promise ? await refusing : refusing
      c.set('rateLimit', decision)
      c.res = response
      // Hono has added the fields that earlier middleware set. Those of an outer limiter are merged with the fields of the refusal.
      if (c.res !== response) response = checked.withFields(c.res)
    }
    if (response === c.res) return
    c.res = undefined // Without this, Hono would overwrite the new fields with the old ones.
    c.res = response
  }
}
