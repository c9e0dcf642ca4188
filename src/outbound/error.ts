/**
 * Why a call was not sent.
 * - `wait`: its turn is later than `wait` allows.
 * - `slots`: no slot of a `concurrency` policy became free within `wait`.
 * - `full`: `maxWaiting` calls wait already.
 * - `too-large`: its cost is above the limit, so it never has a turn.
 * - `store-error`: the store did not answer, and `onStoreError` of a policy is `'deny'`. `cause` is the error of the store.
 */
export type OutboundErrorCode = 'wait' | 'slots' | 'full' | 'too-large' | 'store-error'

/** A call that was not sent, so that it kept to the limits. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  readonly code: OutboundErrorCode
  /** ms until a call may have a turn within `wait`; `null` if it never has one, or if the time is unknown. */
  readonly retryAfterMs: number | null

  constructor(
    code: OutboundErrorCode,
    message: string,
    retryAfterMs: number | null,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}
