/** `sluice/node`: rate limiters for Express, Fastify and plain `http`. */
import type { Decision } from '../../core/base/decision.ts'
import type { AppOptions } from '../../core/config/options.ts'
import type { Limiter } from '../../core/feature.ts'
import type { Limits } from '../../limits/door.ts'
import type { NodeRequest } from './incoming.ts'
import { createNodeLimiter, type DecidedContext, type NodeResponse, serverOf } from './serve.ts'

export { type FastifyRateLimiter, fastifyRateLimiter } from './fastify.ts'
export type { NodeRequest } from './incoming.ts'
export type { NodeResponse } from './serve.ts'

// biome-ignore lint/suspicious/noTsIgnore: the types of Node are present in projects that use this module, but not in src
/* @ts-ignore */
declare module 'http' {
  interface IncomingMessage {
    /** The decision of `rateLimiter` of `sluice/node` on this request. */
    rateLimit?: Decision
    /** Decides policies of `rateLimiter` of `sluice/node` by name and key. */
    sluice?: Limits
  }
}

/** A middleware for Express and other frameworks with the signature of Connect, and a function for plain `http`. */
export interface NodeRateLimiter {
  /** Calls `next` if the request may pass, or with an error; otherwise sends the refusal. Does neither if the client has disconnected. */
  (request: NodeRequest, response: NodeResponse, next: (error?: unknown) => void): Promise<void>
  /**
   * Returns true if the request may pass. Otherwise the refusal has been sent, or the client has disconnected.
   * @throws {ConfigError} if a policy needs the client address, and `clientAddress` is not usable
   */
  (request: NodeRequest, response: NodeResponse): Promise<boolean>
}

/**
 * Creates a rate limiter for Express 4 and 5, and for plain `http`. It answers 429 above a limit, and sets the `RateLimit` fields of other
 * responses before the handler runs. The decision is in `req.rateLimit`, and `req.sluice.limit(name, key)` decides more. The argument of
 * key functions is the request of the server. `clientAddress` is required for policies that count client addresses. Variables of the
 * process name the database: `REDIS_URL`, or the URL and the token of a REST API.
 * @throws {ConfigError} immediately, if the configuration is invalid, or the variables of the process name no database
 * @example
 * app.use(rateLimiter({ clientAddress: 'socket', policies: [{ name: 'per-ip', limit: 100, window: '1m' }] }))
 */
// biome-ignore lint/suspicious/noExplicitAny: fits the request of any framework
export function rateLimiter<Context = any>(options: AppOptions<Context>): NodeRateLimiter {
  return middlewareOf(createNodeLimiter(options))
}

/** @internal */
export function middlewareOf(limiter: Limiter): NodeRateLimiter {
  const serve = serverOf(limiter)
  // Asynchronous, so that an error of `outgoingOf` is a rejection too: headers may have been sent before.
  const check = async (request: NodeRequest & DecidedContext, response: NodeResponse) =>
    serve(request, outgoingOf(request, response), request)

  const limit = (
    request: NodeRequest,
    response: NodeResponse,
    next?: (error?: unknown) => void,
  ): Promise<unknown> => {
    const passes = check(request, response)
    return next ? passes.then((passing) => passing && next(), next) : passes
  }
  return limit as NodeRateLimiter
}

function outgoingOf({ method }: NodeRequest, response: NodeResponse) {
  // `writeHead` hides its fields from `getHeaders` if none was set before.
  response.setHeader('sluice', '')
  response.removeHeader('sluice')
  return {
    response,
    fields: () => response.getHeaders(),
    set: (name: string, value: string) =>
      name === 'set-cookie' ? response.appendHeader(name, value) : response.setHeader(name, value),
    remove: (name: string) => response.removeHeader(name),
    send(status: number, body: Uint8Array) {
      response.statusCode = status
      response.setHeader('content-length', String(body.length))
      response.end(method === 'HEAD' ? body.subarray(0, 0) : body)
    },
  }
}
