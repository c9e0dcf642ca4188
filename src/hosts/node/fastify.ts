import type { AppOptions } from '../../core/config/options.ts'
import type { Limiter } from '../../core/feature.ts'
import type { NodeRequest } from './incoming.ts'
import { createNodeLimiter, type DecidedContext, type NodeResponse, serverOf } from './serve.ts'

// biome-ignore lint/suspicious/noExplicitAny: the methods of Fastify are generic
type Any = any

/** The parts of Fastify that the plugin uses. */
interface ReplyOfFastify {
  raw: NodeResponse
  getHeaders(): object
  header(name: Any, value: Any): Any
  removeHeader(name: Any): Any
  code(status: Any): Any
  send(body: Any): Any
  hijack(): unknown
  /** Calls back when the response has ended or its connection has closed. */
  then(ended: () => void, failed: (error: unknown) => void): unknown
}

interface InstanceOfFastify {
  hasRequestDecorator(name: string): boolean
  decorateRequest(name: Any, value: Any): Any
  addHook(name: 'onRequest', hook: (request: Any, reply: Any) => Promise<Any>): Any
}

/** A plugin for `register` of Fastify. */
export type FastifyRateLimiter = (instance: InstanceOfFastify) => Promise<void>

/**
 * Creates a Fastify plugin that limits requests in the hook `onRequest`. It answers 429 above a limit, and adds the `RateLimit` fields to
 * other responses. The decision is in `request.getDecorator<Decision>('rateLimit')`, and `request.getDecorator<Limits>('sluice')` decides more by name and key. The argument of key functions is Fastify's request.
 * The limiter applies to the instance that registers it and to the plugins inside of that instance.
 * @throws {ConfigError} immediately, if the configuration is invalid, or the variables of the process name no database
 * @example
 * await app.register(fastifyRateLimiter({ clientAddress: 'socket', policies: [{ name: 'per-ip', limit: 100, window: '1m' }] }))
 */
// biome-ignore lint/suspicious/noExplicitAny: fits the request of any Fastify instance
export function fastifyRateLimiter<Context = any>(
  options: AppOptions<Context>,
): FastifyRateLimiter {
  return pluginOf(createNodeLimiter(options))
}

/** @internal */
export function pluginOf(limiter: Limiter): FastifyRateLimiter {
  const serve = serverOf(limiter)

  async function onRequest(request: DecidedContext & { raw: NodeRequest }, reply: ReplyOfFastify) {
    const outgoing = {
      response: reply.raw,
      fields: () => reply.getHeaders(),
      // Also on the raw response, for handlers that write to it.
      set(name: string, value: string) {
        reply.header(name, value)
        reply.raw.setHeader(name, value)
      },
      remove(name: string) {
        reply.removeHeader(name)
        reply.raw.removeHeader(name)
      },
      send: (status: number, body: Uint8Array) => reply.code(status).send(body),
    }
    if (await serve(request.raw, outgoing, request)) return
    await reply
    // If the client has left before the response was sent, Fastify runs the handler after all.
    reply.hijack()
  }

  async function rateLimiter(instance: InstanceOfFastify) {
    for (const name of ['rateLimit', 'sluice'])
      if (!instance.hasRequestDecorator(name)) instance.decorateRequest(name, null)
    instance.addHook('onRequest', onRequest)
  }
  return Object.assign(rateLimiter, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'sluice',
  })
}
