import type { Policy } from '../config/parse.ts'

/** Methods without side effects (RFC 9110, 9.2.1). */
const SAFE = ['GET', 'HEAD', 'OPTIONS']

/** Whether the origin may see a request before the store has decided it. */
export const maySpeculate = ({ method, body, headers }: Request, policies: Policy[]): boolean =>
  SAFE.includes(method) &&
  body === null &&
  !headers.has('upgrade') &&
  policies.every(({ check, mode }) => check === 'parallel' && mode === 'enforce')

/** An origin's response that is requested before the limiter decides. */
export interface Speculative {
  response: Promise<Response>
  /** Aborts the request and discards its response. */
  cancel(): void
}

/** @param ask asks the origin, until the signal; never rejects */
export function speculate(ask: (ending: AbortController) => Promise<Response>): Speculative {
  const ending = new AbortController()
  const response = ask(ending)
  return {
    response,
    cancel() {
      ending.abort()
      response.then(({ body }) => body?.cancel()).catch(() => {})
    },
  }
}
