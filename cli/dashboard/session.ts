/**
 * The secret between the browser and the local server. Other users of this machine reach the port, but do not know the address that the
 * command prints: its fragment has the secret, which the page exchanges for a cookie.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export interface Session {
  /** The fragment of the printed address. */
  secret: string
  /** True for the secret itself. */
  accepts(secret: string): boolean
  /** The field `Set-Cookie` that lets a browser in until it closes. */
  cookie(request: IncomingMessage): string
  /** True if a request has the cookie. */
  isOpen(request: IncomingMessage): boolean
}

export function createSession(): Session {
  const secret = randomBytes(32).toString('base64url')
  const expected = digest(secret)
  const accepts = (text: string) => timingSafeEqual(digest(text), expected)
  return {
    secret,
    accepts,
    cookie: (request) => `${nameOf(request)}=${secret}; Path=/; HttpOnly; SameSite=Strict`,
    isOpen: (request) =>
      (request.headers.cookie ?? '')
        .split('; ')
        .map((pair) => pair.split('='))
        .some(([name, value = '']) => name === nameOf(request) && accepts(value)),
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/** Browsers send a cookie to every port of a host, so that each dashboard needs a name of its own. */
const nameOf = ({ socket }: IncomingMessage) => `sluice-${socket.localPort}`
