/** The rules that keep other sites away from the local server, which holds the token of an operator. */
import type { IncomingMessage } from 'node:http'

const LOOPBACK = /^(127\.0\.0\.1|localhost)(:\d+)?$/

/**
 * Returns why a request must be refused, or `undefined`. A site can make a browser send requests to this machine: under its own host name
 * (DNS rebinding), or from its own pages (CSRF). Browsers state both, and pages cannot change what they state.
 */
export function refusalOf({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>) {
  const { host = '', origin, 'sec-fetch-site': site } = headers
  if (!LOOPBACK.test(host)) return 'Open the dashboard at 127.0.0.1 or localhost.'
  if (origin !== undefined && origin !== `http://${host}`)
    return 'Only the dashboard may call this.'
  // Browsers send Origin with each POST.
  if (method !== 'GET' && origin === undefined) return 'A call needs the field Origin.'
  const isDirect = method === 'GET' && site === 'none' // typed, or a bookmark
  if (site !== undefined && site !== 'same-origin' && !isDirect) {
    return 'Open the dashboard by its address, not from another site.'
  }
  return undefined
}

/** The header fields of every answer. A text of the Worker can never become a script, even if the page had a mistake. */
export const headers = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Cache-Control': 'no-store',
}
