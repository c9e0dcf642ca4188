/**
 * The interface between the matcher and `sluice/jwt`. It has types only: a Worker that does not import `sluice/jwt` has none of its code.
 */
import type { Log } from './log.ts'
import type { Unusable } from './unusable.ts'

/** A part of a described request that was too long to describe. What it may have is unreadable, and not missing. */
export type Omitted = 'headers' | 'query' | 'path' | 'body'

/** The parts of a request that the verification of a token reads. The fields are those of `RequestView`. */
export interface TokenView {
  request: Request
  query: URLSearchParams
  omitted?: readonly Omitted[]
  env: Record<string, unknown>
  waitUntil: (promise: Promise<unknown>) => void
}

/** Reads the claims of a request's verified token, as an object without a prototype; `undefined` if the request has no token. Never throws. */
export type Claims = (view: TokenView) => Promise<Record<string, unknown> | Unusable | undefined>

export interface ClaimsParts {
  /** Longest time that a request waits for the first keys of an issuer, ms. */
  deadlineMs: number
  /** Receives events `jwt` for a missing or short secret, and `jwks` for keys that cannot be fetched. Errors of clients are not logged. */
  log: Log
  /** Returns ms since the epoch. Defaults to `Date.now`. */
  clock?: () => number
}

/** The result of `jwt()`. */
export interface Jwt {
  /** Name of the variable with the secret. Undefined with `jwks`. */
  secret: string | undefined
  createClaims: (parts: ClaimsParts) => Claims
}
