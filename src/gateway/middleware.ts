import type { Context, Env, MiddlewareHandler } from 'hono'
import type { Bindings } from '../base/bindings.ts'
import type { Decision } from '../base/decision.ts'
import { ConfigError } from '../base/errors.ts'
import type { ConfigOptions } from '../config/options.ts'
import { type Config, type Policy, parseConfig } from '../config/parse.ts'
import { whenEnded } from '../http/body-end.ts'
import { withCors } from '../http/cors.ts'
import { refusal, withDecisionFields } from '../http/response.ts'
import { wouldRefuse } from '../http/shadow.ts'
import { type Core, createCore } from '../limiter/create.ts'
import { createLimiter, type LimiterParts } from '../limiter/decide.ts'
import { type Charge, holdsSlots, isOpen, settle } from '../limiter/settle.ts'
import { type RequestView, viewOf } from '../request/view.ts'

declare module 'hono' {
  interface ContextVariableMap {
    /** What `rateLimiter` decided for this request. */
    rateLimit: Decision
  }
}

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
  return enforce(createCore(config, options))
}

/** Whatever comes after a middleware may do more than answer: it waits for the verdict. */
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

/** What may go on while the store is asked. */
export interface Meanwhile {
  /** Told right before it is: about which policies. */
  asking(c: Context, policies: Policy[]): void
  /** Told that the request is refused. */
  refused(c: Context): void
}

/** {@link rateLimiter} on a core that others may share. */
export function enforce(
  { config, log, rulesOf, partsOf }: Core,
  meanwhile?: Meanwhile,
): MiddlewareHandler {
  const decide = createLimiter((view) => rulesOf(view).describe(view))

  return async function rateLimiter(c, next) {
    const env = (c.env ?? {}) as Bindings & Record<string, unknown>
    const view = viewOf(
      c.req.raw,
      { env, context: c, waitUntil: (promise) => keep(c, promise) },
      config,
    )
    const parts = partsOf(env)
    const deciding = decide(view, parts, (policies) => meanwhile?.asking(c, policies))
    // What waits for the answer is settled also for a client who leaves before there is a decision.
    if (rulesOf(view).config.policies.some((policy) => isOpen({ policy }))) view.waitUntil(deciding)
    const { decision, charges } = await deciding
    const settled = charges && open(view, charges, parts)
    c.set('rateLimit', decision)
    for (const policy of wouldRefuse(decision)) {
      log('shadow-refused', policy, 'a policy in shadow would have refused a request')
    }
    const own = !decision.allowed
    if (own) {
      meanwhile?.refused(c)
      c.res = refusal(decision)
    } else {
      try {
        await next()
      } catch (error) {
        settled?.(new Response(null, { status: 500 })) // what was thrown is no Error, or Hono had answered it
        throw error
      }
    }
    const answer = settled ? settled(c.res) : c.res
    const told = withDecisionFields(answer, decision, config, { own })
    const response = withCors(told, c.req.header('origin'), config, { own })
    if (response === c.res) return
    c.res = undefined // else Hono would put the old fields back over the new
    c.res = response
  }
}

/** What is to be done of a charge once there is an answer. Begun before, so that it is done also where the client is gone by then. */
function open(view: RequestView, charges: Charge[], { onStoreError }: LimiterParts) {
  const { promise, resolve } = Promise.withResolvers<void>()
  view.waitUntil(promise)
  return (answer: Response): Response => {
    const { status, headers } = answer
    const finish = () =>
      Promise.all(
        charges.map((charge) =>
          settle(charge, { status, headers }, view.waitUntil).catch(onStoreError),
        ),
      ).then(() => resolve(), resolve)
    // Of an answer to HEAD nobody reads a body: Hono throws it away, and its end would never come.
    if (charges.some(holdsSlots) && view.request.method !== 'HEAD') return whenEnded(answer, finish)
    finish()
    return answer
  }
}

/** Outside Workers there is nothing to tell: a process goes on by itself. */
export function keep(c: Context, promise: Promise<unknown>) {
  try {
    c.executionCtx.waitUntil(promise)
  } catch {
    promise.catch(() => {})
  }
}
