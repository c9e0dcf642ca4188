import type { Decision } from '../../core/base/decision.ts'
import { withRedisUrl } from '../../core/base/redis-url.ts'
import { keepNothing } from '../../core/base/runtime.ts'
import { variablesFor } from '../../core/base/variables.ts'
import type { AppOptions } from '../../core/config/options.ts'
import type { Limiter } from '../../core/create.ts'
import type { ResponseHead } from '../../core/decide/settle.ts'
import type { CheckedRequest } from '../../core/decided-request.ts'
import { checkRequest } from '../../core/pipeline.ts'
import { callsOf, type LimitRuntime, type Limits } from '../../limits/door.ts'
import { policyDoor } from '../../limits/policies.ts'
import { createAppLimiter } from './app-limiter.ts'

/** What the runtime knows about a request. */
export interface CheckRuntime extends LimitRuntime {
  /** The argument of key functions. Defaults to the request. */
  context?: unknown
  /** The address of the connection, for `clientAddress: 'socket'` and lists of trusted proxies. */
  remoteAddress?: string | undefined
  /** Resolves when the client has gone, so that it gives up its turn (`wait` of a policy). Defaults to the signal of the request. */
  closed?: Promise<unknown> | undefined
}

/** The result of a check. */
export interface CheckResult {
  /** True if the request may pass. */
  allowed: boolean
  decision: Decision
  /** The response to a request that does not pass, complete: 429, 403 or 503, or the answer of an endpoint. Undefined if the request may pass. */
  response: Response | undefined
  /** The fields that the response to an admitted request should have: `RateLimit` and others of the configuration. */
  headers: Headers
  /**
   * Finishes an admitted request: adds the fields to its response, refunds what the response does not count (`countOnly`,
   * `cost.response`), and releases slots when the body has ended. Call it once, and send the response that it returns.
   */
  finish: (response: Response) => Response
  /** Adds the fields to a response, for servers that call `settle`. Those of the same quota that the response has are merged. */
  withFields: (response: Response) => Response
  /**
   * Refunds and releases without a `Response`, for servers that write their own. Call it once, when the handler has ended and its response
   * has been sent. Without a head, as when the handler gave none to a client that has left, charges stay, and slots are released.
   */
  settle: (head?: ResponseHead) => void
}

/**
 * A rate limiter that needs no framework. `limit` and its siblings decide policies by name and key, in the order of the parts of the key:
 * they count what requests with that key count. The conditions of a policy, and the lists `allow` and `deny`, do not apply to them.
 */
export interface Sluice extends Limits {
  /** Decides a request and charges its quotas. Rejects with a `ConfigError` if `clientAddress` is needed, and missing outside of Cloudflare. */
  check: (request: Request, runtime?: CheckRuntime) => Promise<CheckResult>
}

/**
 * Creates a rate limiter for any server that has a `Request`. `rateLimiter()` for Hono, `sluice/node` and `sluice/next` are thin
 * layers over it.
 * @throws {ConfigError} immediately, if the configuration is invalid
 * @example
 * const sluice = createSluice({ clientAddress: 'socket', policies: [{ name: 'per-ip', limit: 100, window: '1m' }] })
 * const { response, finish } = await sluice.check(request, { remoteAddress })
 * return response ?? finish(await handle(request))
 */
export function createSluice<Context = Request>(options: AppOptions<Context>): Sluice {
  return withDoor(createAppLimiter(withRedisUrl(options)))
}

/** @param limiter with the operations of the door */
export const withDoor = (limiter: Limiter): Sluice => ({
  ...callsOf(policyDoor(limiter)),
  check: checkOf(limiter),
})

export const checkOf =
  (limiter: Limiter): Sluice['check'] =>
  async (request, { env, waitUntil, context = request, ...connection } = {}) => {
    const keepAlive = waitUntil ?? keepNothing // JavaScript may pass null
    const runtime = { env: variablesFor(env), waitUntil: keepAlive, context, ...connection }
    const checked = await checkRequest(limiter, request, runtime)
    return new Result(checked, checked.passes ? undefined : await checked.refuse())
  }

/** A class, because an object that is made with a getter of its own is slow. */
class Result implements CheckResult {
  readonly #checked: CheckedRequest
  readonly allowed: boolean
  readonly decision: Decision
  readonly response: Response | undefined

  constructor(checked: CheckedRequest, response: Response | undefined) {
    this.#checked = checked
    this.allowed = checked.passes
    this.decision = checked.decision
    this.response = response
  }

  // Functions of the result, which callers may take apart.
  readonly finish: CheckResult['finish'] = (response) => this.#checked.finish(response)
  readonly withFields: CheckResult['withFields'] = (response) => this.#checked.withFields(response)
  readonly settle: CheckResult['settle'] = (head) => this.#checked.settle(head)

  get headers(): Headers {
    return this.withFields(new Response(null)).headers
  }
}
