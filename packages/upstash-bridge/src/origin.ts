import type { IncomingMessage } from 'node:http'
import { BadRequest } from './request.ts'

/** @throws BadRequest for a request that a web page may have sent. @param allowed host names besides loopback names */
export function checkOrigin(request: IncomingMessage, allowed: Set<string>): void {
  if (isFromAWebsite(request)) {
    throw new BadRequest('ERR refused: the request comes from a website', 403)
  }
  const host = hostOf(request)
  if (host !== undefined && !isLoopback(host) && !allowed.has(host)) throw unknownHost(host)
}

/**
 * True for a request from a page of another host. Any page that a developer visits could otherwise send
 * `GET /flushall?_token=dev`, which needs no CORS. Requests from a page on this machine or from the address bar pass.
 */
function isFromAWebsite(request: IncomingMessage): boolean {
  const { origin } = request.headers
  if (origin === undefined) return request.headers['sec-fetch-site'] === 'cross-site'
  const [, host = ''] = /^https?:\/\/(.+?)(:\d+)?$/i.exec(origin) ?? []
  return !isLoopback(host)
}

/**
 * The Host header without the port; absent in HTTP/1.0, which no browser sends. A page whose host name resolves to
 * 127.0.0.1 (DNS rebinding) sends same-origin requests, which only their Host header reveals.
 */
const hostOf = ({ headers }: IncomingMessage) => headers.host?.replace(/:\d*$/, '').toLowerCase()

export const isLoopback = (host: string) =>
  /^(localhost|[^/:]+\.localhost|127\.[\d.]+|\[?::1\]?)$/i.test(host)

function unknownHost(host: string) {
  const name = host.slice(0, 255)
  return new BadRequest(
    `ERR refused: the Host header ${JSON.stringify(name)} is not a loopback name. To accept it, start the bridge with --allow-host ${name}`,
    403,
  )
}
