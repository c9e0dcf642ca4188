import type { Policy } from './config/parse.ts'

/** Methods without side effects (RFC 9110, 9.2.1). */
const SAFE = ['GET', 'HEAD', 'OPTIONS']

/** Returns true if the origin may see a request before the store decides it. */
export const maySpeculate = ({ method, body, headers }: Request, policies: Policy[]): boolean =>
  SAFE.includes(method) &&
  body === null &&
  !headers.has('upgrade') &&
  policies.every(({ check, mode }) => check === 'parallel' && mode === 'enforce')

/** A response of the origin that is requested before the limiter decides. */
export interface Speculative {
  response: Promise<Response>
  /** Aborts the request and discards its response. */
  cancel(): void
}

/**
 * Calls the origin before the limiter decides.
 * @param callOrigin calls the origin until the controller aborts; must not reject
 */
export function speculate(callOrigin: (abort: AbortController) => Promise<Response>): Speculative {
  const abort = new AbortController()
  const response = callOrigin(abort)
  return {
    response,
    cancel() {
      abort.abort()
      response.then(({ body }) => body?.cancel()).catch(() => {})
    },
  }
}
