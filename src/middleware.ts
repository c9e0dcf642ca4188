import type { MiddlewareHandler } from 'hono'
import type { Decision } from './decision.ts'
import { createLimiter, type LimiterParts } from './limiter.ts'
import { createLog } from './log.ts'
import { type Config, type ConfigOptions, parseConfig } from './policy.ts'
import { refusal, withDecisionFields } from './response.ts'
import { withBreaker } from './store/breaker.ts'
import { createLocalStore } from './store/local.ts'
import { createUpstashStore } from './store/upstash.ts'
import { hashedSubjects, plainSubjects } from './subject.ts'

/** What the limiter reads from the Worker's environment. */
export interface Bindings {
  /** The database's REST URL and token. Without them every decision is a store error. */
  UPSTASH_REDIS_REST_URL?: string
  UPSTASH_REDIS_REST_TOKEN?: string
  /** The secret under which subjects are hashed. Defaults to the token; Workers that share quotas have to share it. */
  SLUICE_SECRET?: string
}

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
 * app.use(rateLimiter({ policies: [{ name: 'per-ip', limit: 100, window: '1m' }] }))
 */
export function rateLimiter(options: Omit<ConfigOptions, 'origin'>): MiddlewareHandler {
  const config = parseConfig(options)
  const decide = createLimiter(config)
  const partsOf = limiterParts(config)
  const withFields = (response: Response, decision: Decision) =>
    withDecisionFields(response, decision, config)

  return async function rateLimiter(c, next) {
    const decision = await decide(c.req.raw, partsOf(c.env ?? {}))
    c.set('rateLimit', decision)
    if (!decision.allowed) return withFields(refusal(decision), decision)
    await next()
    const response = withFields(c.res, decision)
    if (response === c.res) return
    c.res = undefined // else Hono would put the old fields back over the new
    c.res = response
  }
}

/** The limiter's way outside, made once for each set of credentials, which an isolate does not change. */
function limiterParts({ subjects }: Config): (env: Bindings) => LimiterParts {
  const log = createLog()
  const local = createLocalStore()
  const onStoreError: LimiterParts['onStoreError'] = ({ code, message }) => {
    if (code !== 'circuit-open') log('store-error', code, message) // which has its own line
  }
  let made: { by: string; parts: LimiterParts } | undefined

  return ({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token, SLUICE_SECRET }) => {
    const secret = SLUICE_SECRET || token || 'sluice'
    const by = JSON.stringify([url, token, secret])
    if (made?.by !== by) {
      const upstash = createUpstashStore({
        url,
        token,
        onReload: () => log('script-reloaded', '', 'the database had lost the script'),
      })
      const store = withBreaker(upstash, {
        onOpen: (code) => log('breaker-opened', code, 'the database is not asked for a while'),
        onClose: (openMs) =>
          log('breaker-closed', '', `the database answers again after ${openMs} ms`),
      })
      const nameSubject = subjects === 'plain' ? plainSubjects(secret) : hashedSubjects(secret)
      made = { by, parts: { store, local, nameSubject, onStoreError } }
    }
    return made.parts
  }
}
