/** The steps that all Node servers share: check a request, add the fields, write a refusal, and settle when the response has ended. */
import type { Decision } from '../../core/base/decision.ts'
import { withRedisUrl } from '../../core/base/redis-url.ts'
import { variablesFor } from '../../core/base/variables.ts'
import { readsBodies } from '../../core/config/feature.ts'
import type { Limiter } from '../../core/feature.ts'
import { bodySources } from '../../core/request/body-sources.ts'
import type { Limits } from '../../limits/door.ts'
import { policyDoor } from '../../limits/policies.ts'
import { type CheckResult, checkOf } from '../app/sluice.ts'
import { bodySource, discard, mayHaveBody } from './body.ts'
import { type NodeRequest, socketOf, toRequest } from './incoming.ts'
import { createKnowingLimiter } from './knowing-limiter.ts'
import { ofNode } from './lacks.ts'

/** The parts of Node's `ServerResponse` that the adapters use. */
export interface NodeResponse {
  statusCode: number
  readonly headersSent: boolean
  /** True if the app has called `end`. That of HTTP/2 stays false if its client had left before. */
  readonly writableEnded: boolean
  /** Undefined for HTTP/2. */
  readonly destroyed: boolean
  /** The error with which the app has destroyed the response. */
  readonly errored?: Error | null
  getHeaders(): object
  setHeader(name: string, value: string): unknown
  appendHeader(name: string, value: string): unknown
  removeHeader(name: string): void
  end(body: Uint8Array): unknown
  once(event: 'close' | 'pipe', listener: () => void): unknown
  listenerCount(event: 'close'): number
}

/** The properties of Node's `Socket` that tell who has closed it. */
type Socket = { readableEnded: boolean; errored: Error | null; timeout: number }

/** A response of a server or a framework. */
export interface Outgoing {
  response: NodeResponse
  fields: () => object
  set: (name: string, value: string) => void
  remove: (name: string) => void
  /** Sends a refusal, whose fields are set. */
  send: (status: number, body: Uint8Array) => void
}

/** What the handler of a request finds at the request of its framework. */
export interface DecidedContext {
  rateLimit?: Decision
  sluice?: Limits
}

/** The status to settle by if no handler runs, because the client has disconnected before. No `countOnly` counts it. */
const NOT_HANDLED = 0

/** @throws {ConfigError} if the configuration is invalid, or its client address has no source */
export const createNodeLimiter = (options: object): Limiter =>
  createKnowingLimiter(withRedisUrl(options), [ofNode])

/** Creates the function that decides the requests of a server. @throws {ConfigError} if the variables of the process name no database */
export function serverOf(limiter: Limiter) {
  limiter.partsOf(variablesFor())
  const checking = checkOf(limiter)
  const door = policyDoor(limiter)
  const usesBodies = readsBodies(limiter.config)

  /**
   * @param context the request of the framework: the argument of key functions, which gets the decision before the handler runs
   * @returns true if the request may pass. False also if the client has disconnected, or if the app has answered in the meantime
   * @throws {ConfigError} if a policy needs the client address, and `clientAddress` is not usable
   */
  return async (
    incoming: NodeRequest,
    outgoing: Outgoing,
    context: DecidedContext,
  ): Promise<boolean> => {
    const { response } = outgoing
    if (isOver(incoming, response)) return false
    const { remoteAddress } = socketOf(incoming)
    const request = toRequest(incoming)
    if ('status' in request) {
      for (const [name, value] of request.headers) outgoing.set(name, value)
      await send(outgoing, request)
      return false
    }
    if (mayHaveBody(incoming) && (usesBodies || request.url.includes('/_sluice/')))
      bodySources.set(request, bodySource(incoming))
    const closed = new Promise<boolean>((resolve) =>
      response.once('close', () => resolve(hasEnded(incoming, response))),
    )
    const check = await checking(request, { context, remoteAddress, closed })
    Object.assign(context, { rateLimit: check.decision, sluice: door })
    if (isOver(incoming, response)) {
      check.settle({ status: NOT_HANDLED, headers: new Headers() })
      return false
    }
    settleAfter(closed, incoming, outgoing, check)
    if (response.headersSent) return false
    const refusal = check.response
    if (refusal) {
      // The other fields of a refusal depend on the fields that are set, such as those of a CORS middleware.
      const { headers: ownFields } = check
      for (const [name, value] of refusal.headers)
        if (!ownFields.has(name)) outgoing.set(name, value)
    }
    setFields(outgoing, check.withFields)
    if (!refusal) return true
    await send(outgoing, refusal)
    if (usesBodies) discard(incoming)
    return false
  }
}

/** True if the response has ended or the client has disconnected. */
function isOver(incoming: NodeRequest, response: NodeResponse): boolean {
  const { stream } = incoming as { stream?: { destroyed: boolean } }
  return response.destroyed || socketOf(incoming).destroyed === true || stream?.destroyed === true
}

const send = async (outgoing: Outgoing, refusal: Response) =>
  outgoing.send(refusal.status, new Uint8Array(await refusal.arrayBuffer()))

/**
 * Settles by the response of the app, once the app has ended it and its connection has closed. A client that leaves ends neither the
 * handler nor its slot. If the app gives no response, the charges stay, and the slots expire.
 */
function settleAfter(
  closed: Promise<boolean>,
  incoming: NodeRequest,
  { response, fields }: Outgoing,
  check: CheckResult,
) {
  const settle = (isAnswered: boolean) =>
    check.settle(
      isAnswered || response.headersSent
        ? { status: response.statusCode, headers: headersOf(fields()) }
        : undefined,
    )
  closed.then((isEnded) => (isEnded ? settle(false) : whenAppEnds(incoming, response, settle)))
}

/**
 * True if the app has no more to do for a response whose connection has closed: it has ended the response or closed the connection, or it
 * hears of the close while it sends the body, as a stream that is piped does. A timeout may close the connection of a running handler.
 */
function hasEnded(incoming: NodeRequest, response: NodeResponse): boolean {
  const { readableEnded, errored, timeout } = incoming.socket as Partial<Socket>
  const isByClient = readableEnded !== false || (errored && errored !== response.errored)
  const isClosedHere = response.destroyed && !isByClient && !timeout
  const { listenerCount } = incoming as NodeRequest & Pick<NodeResponse, 'listenerCount'>
  const listeners = response.listenerCount('close') + listenerCount.call(incoming, 'close')
  return response.writableEnded || isClosedHere || (response.headersSent && listeners > 0)
}

/**
 * Calls back when the app ends a response whose client has left. Node then has no event for it, and HTTP/2 drops the status.
 * @param ended its argument is false if the app gives no response
 */
function whenAppEnds(
  { socket }: NodeRequest,
  response: NodeResponse,
  ended: (isAnswered: boolean) => void,
) {
  type Method = (...args: unknown[]) => unknown
  const { writeHead } = response as object as { writeHead: Method }
  const watch = (target: object, name: 'end' | 'destroy') => {
    const method = (target as Record<typeof name, Method>)[name]
    const watched: Method = (...args) => {
      const result = method.apply(target, args)
      ended(name === 'end')
      return result
    }
    Object.assign(target, { [name]: watched })
  }
  Object.assign(response, {
    writeHead(...args: [status: number, ...unknown[]]) {
      response.statusCode = args[0]
      return writeHead.apply(response, args)
    },
  })
  watch(response, 'end')
  // A framework destroys the socket after an error in a response that has begun. HTTP/2 itself destroys a response that is written to.
  if (response.destroyed) for (const one of [response, socket]) watch(one, 'destroy')
  response.once('pipe', () => ended(true))
}

/** Changes the fields of a response as `withFields` does. */
function setFields({ fields, set, remove }: Outgoing, withFields: CheckResult['withFields']) {
  const before = headersOf(fields())
  // A copy: the `Response` of `@hono/node-server`, which may be the global one, adopts the object.
  const { headers: after } = withFields(new Response(null, { headers: new Headers(before) }))
  for (const name of [...before.keys()]) if (!after.has(name)) remove(name)
  for (const [name, value] of after) if (value !== before.get(name)) set(name, value)
}

/** Leaves out cookies, which a limiter does not change, and invalid fields, which Node refuses to send. */
function headersOf(fields: object): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(fields as Record<string, unknown>)) {
    if (value === undefined || name === 'set-cookie') continue
    try {
      for (const one of [value].flat()) headers.append(name, String(one))
    } catch {
      // Fastify keeps a field with an invalid value, and answers 500.
    }
  }
  return headers
}
