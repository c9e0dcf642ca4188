/** The steps that all Node servers share: check a request, add the fields, write a refusal, and settle when the response has ended. */

import type { Decision } from '../../core/base/decision.ts'
import { bodySources } from '../../core/request/body-sources.ts'
import type { CheckResult, Sluice } from '../app/sluice.ts'
import { bodySource, discard, mayHaveBody } from './body.ts'
import { type NodeRequest, socketOf, toRequest, type Unreadable } from './incoming.ts'

/** The value of a header in Node. */
type NodeHeader = string | number | readonly string[] | undefined

/** The parts of Node's `ServerResponse` that the adapters use. */
export interface NodeResponse {
  statusCode: number
  readonly headersSent: boolean
  readonly destroyed: boolean
  getHeaders(): object
  setHeader(name: string, value: string): unknown
  appendHeader(name: string, value: string): unknown
  removeHeader(name: string): void
  end(body: Uint8Array): unknown
  once(event: 'close', listener: () => void): unknown
}

/** A response of a server or a framework. */
export interface Outgoing {
  response: NodeResponse
  /** The header fields that are set, by name. */
  fields: () => object
  set: (name: string, value: string) => void
  remove: (name: string) => void
  /** Sends a refusal, whose fields are set. */
  send: (status: number, body: Uint8Array) => void
}

/** Receives the decision before the handler runs. */
type Decided = (decision: Decision) => void

/** The status to settle by if the client disconnects before a status is sent. Servers write it into their logs. */
const CLIENT_CLOSED_REQUEST = 499

/**
 * Decides a request. Sends the refusal if it is refused.
 * @param context the argument of key functions
 * @param usesBodies true if the configuration uses `bodies()`
 * @returns true if the request may pass. False also if the client has disconnected, or if the app has answered in the meantime
 * @throws {ConfigError} if a policy needs the client address, and `clientAddress` is not usable
 */
export async function serve(
  sluice: Sluice,
  incoming: NodeRequest,
  outgoing: Outgoing,
  context: unknown,
  decided: Decided,
  usesBodies: boolean,
): Promise<boolean> {
  const { response } = outgoing
  if (isOver(incoming, response)) return false
  const { remoteAddress } = socketOf(incoming)
  const request = toRequest(incoming)
  if ('detail' in request) {
    refuseUnreadable(outgoing, request)
    return false
  }
  if (mayHaveBody(incoming) && (usesBodies || request.url.includes('/_sluice/')))
    bodySources.set(request, bodySource(incoming))
  const closed = new Promise<void>((resolve) => response.once('close', resolve))
  const check = await sluice.check(request, { context, remoteAddress, closed })
  decided(check.decision)
  settleAfter(closed, outgoing, check)
  if (isOver(incoming, response) || response.headersSent) return false
  if (!check.response) {
    setFields(outgoing, check.withFields)
    return true
  }
  const refusal = check.response
  // The other fields of a refusal depend on the fields that are set, such as those of a CORS middleware.
  const { headers: ownFields } = check
  for (const [name, value] of refusal.headers) {
    if (!ownFields.has(name)) outgoing.set(name, value)
  }
  setFields(outgoing, check.withFields)
  outgoing.send(refusal.status, new Uint8Array(await refusal.arrayBuffer()))
  if (usesBodies) discard(incoming)
  return false
}

/** True if the response has ended or the client has disconnected. The response of HTTP/2 has no `destroyed`. */
const isOver = (incoming: NodeRequest, response: NodeResponse) =>
  response.destroyed || socketOf(incoming).destroyed === true

function refuseUnreadable({ set, send }: Outgoing, { status, detail }: Unreadable) {
  set('content-type', 'application/problem+json')
  set('cache-control', 'no-store')
  const title = status === 405 ? 'Method not allowed' : 'Bad request'
  const document = JSON.stringify({ type: 'about:blank', status, title, detail })
  send(status, new TextEncoder().encode(document))
}

/** Settles by the response that was sent. */
function settleAfter(closed: Promise<void>, { response, fields }: Outgoing, check: CheckResult) {
  closed.then(() => {
    const status = response.headersSent ? response.statusCode : CLIENT_CLOSED_REQUEST
    check.settle({ status, headers: headersOf(fields()) })
  })
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
  for (const [name, value] of Object.entries(fields as Record<string, NodeHeader>)) {
    if (value === undefined || name === 'set-cookie') continue
    try {
      for (const one of [value].flat()) headers.append(name, String(one))
    } catch {
      // Fastify keeps a field with an invalid value, and answers 500.
    }
  }
  return headers
}
