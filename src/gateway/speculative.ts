import type { Policy } from '../config/parse.ts'

/** Methods that ask for nothing but an answer (RFC 9110, 9.2.1). */
export const SAFE = ['GET', 'HEAD', 'OPTIONS']

/** Whether the origin may see a request of which the store has yet to say whether it passes. */
export const mayBeEarly = ({ method, body, headers }: Request, policies: Policy[]): boolean =>
  SAFE.includes(method) &&
  body === null &&
  !headers.has('upgrade') &&
  policies.every(({ check, mode }) => check === 'parallel' && mode === 'enforce')

/** An origin's answer that is asked for before anybody knows whether the client may have it. */
export interface Early {
  answer: Promise<Response>
  /** Nobody is to have it: the request is given up, and what has come of its answer. */
  drop(): void
}

/** @param ask asks the origin, until the signal; never rejects */
export function askEarly(ask: (ending: AbortController) => Promise<Response>): Early {
  const ending = new AbortController()
  const answer = ask(ending)
  return {
    answer,
    drop() {
      ending.abort()
      answer.then(({ body }) => body?.cancel()).catch(() => {})
    },
  }
}
