import type { Context, Env, MiddlewareHandler } from 'hono'
import { ConfigError } from '../base/errors.ts'
import type { ConfigOptions } from '../config/options.ts'
import { type Config, parseConfig } from '../config/parse.ts'
import { createLimiter } from '../limiter/create.ts'
import { limitRequest } from './pipeline.ts'

/**
 * Rate limits in front of whatever comes after it: answers 429 past a limit, and adds the `RateLimit` fields to what passes.
 * The decision is in `c.var.rateLimit`. Credentials come from `c.env` (see {@link Bindings}).
 * @throws {ConfigError} at once, where the policies are wrong
 * @example
 * app.use(rateLimiter({ policies: [{ name: 'per-user', limit: 100, window: '1m', key: (c) => c.get('user').id }] }))
 */
// biome-ignore lint/suspicious/noExplicitAny: as Hono's own handlers, it fits an app of any environment
export function rateLimiter<E extends Env = any>(
  options: Omit<ConfigOptions<Context<E>>, 'origin'>,
): MiddlewareHandler<E> {
  const config = parseConfig(options)
  checkBefore(config)
  const limiter = createLimiter(config, options)

  return async function rateLimiter(c, next) {
    const respond = async () => {
      await next()
      return c.res
    }
    const refuse = (refusal: Response) => {
      c.res = refusal // Hono adds the fields that earlier middleware has set
      return c.res
    }
    const response = await limitRequest(limiter, c, { refuse, respond })
    if (response === c.res) return
    c.res = undefined // else Hono would put the old fields back over the new
    c.res = response
  }
}

/** Rejects `check: 'parallel'`: downstream handlers may have side effects. */
function checkBefore({ policies }: Config) {
  const problems = policies.flatMap(({ check }, index) =>
    check === 'before'
      ? []
      : [
          {
            path: `policies[${index}].check`,
            expected: 'before (rateLimiter has no origin to ask meanwhile)',
            got: JSON.stringify(check),
          },
        ],
  )
  if (problems.length > 0) throw new ConfigError(problems)
}
