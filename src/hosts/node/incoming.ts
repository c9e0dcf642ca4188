/** The Fetch API's `Request` of a request to a Node server. */
import { isAmbiguous } from '../../core/base/ambiguous-target.ts'
import { HOST } from '../../core/base/host.ts'
import { problem } from '../../core/respond/response.ts'

/** The parts of Node's `IncomingMessage` that the adapters use. Described here, so that users need no types of a framework. */
export interface NodeRequest {
  method?: string | undefined
  url?: string | undefined
  /** The URL before a router removed its own path from `url`. Express sets it. */
  originalUrl?: string | undefined
  headers: Record<string, string | string[] | undefined>
  rawHeaders: string[]
  socket: object
}

/** The properties of a socket that the adapters read. `encrypted` is true for TLS. */
type NodeSocket = { encrypted?: boolean; remoteAddress?: string; destroyed?: boolean }

export const socketOf = ({ socket }: NodeRequest): NodeSocket => socket

/** Methods that the Fetch standard does not allow. */
const FORBIDDEN = ['CONNECT', 'TRACE', 'TRACK']

const badRequest = (what: string) =>
  problem(400, { title: 'Bad Request', detail: `The ${what} of the request is invalid.` })

/** Makes a `Request` without a body, or the answer to a request that cannot be one. */
export function toRequest(incoming: NodeRequest): Request | Response {
  const { method = 'GET', rawHeaders } = incoming
  if (FORBIDDEN.includes(method))
    return problem(405, { title: 'Method Not Allowed', detail: `${method} is not supported.` })
  const url = urlOf(incoming)
  if (!url) return badRequest('Host or the target')
  try {
    const headers = new Headers()
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index]!
      // HTTP/2 has the method, the path and the host in fields that begin with a colon.
      if (!name.startsWith(':')) headers.append(name, rawHeaders[index + 1]!)
    }
    return new Request(url, { method, headers })
  } catch {
    return badRequest('method or a header')
  }
}

function urlOf(incoming: NodeRequest): string | undefined {
  const scheme = socketOf(incoming).encrypted ? 'https' : 'http'
  const host = hostOf(incoming)
  const target = incoming.originalUrl ?? incoming.url ?? ''
  // A proxy sends the whole URL (RFC 9112, 3.2.2). Frameworks read the host from the field Host, so both must be the same.
  const [, authority, path = target] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target) ?? []
  if (host === undefined || (authority !== undefined && authority !== host)) return undefined
  if (!/^([/?]|$)/.test(path) || isAmbiguous(path)) return undefined
  if (path === '' && authority === undefined) return undefined
  const url = `${scheme}://${host}${path}`
  return URL.canParse(url) ? url : undefined
}

/**
 * The host of a request. HTTP/1.0 allows a request without one. Returns `undefined` if it is invalid, or if there are several: HTTP/2 also
 * has it in `:authority`, and apps read either (RFC 9113, 8.3.1).
 */
function hostOf({ headers, rawHeaders }: NodeRequest): string | undefined {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && /^host$/i.test(name))
  const { ':authority': authority, host = authority ?? 'localhost' } = headers
  const isOne = hosts.length < 2 && (authority ?? host) === host
  return isOne && typeof host === 'string' && HOST.test(host) ? host : undefined
}
