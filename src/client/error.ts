/** A problem document of the decision API (RFC 9457). */
export interface Problem {
  type: string
  status: number
  title: string
  detail?: string
  /** With 422: what is wrong in the body. */
  errors?: { path: string; expected: string; got: string }[]
  [member: string]: unknown
}

/**
 * Why the decision API gave no decision.
 * - `timeout`: no answer within the deadline. The call may have counted.
 * - `unreachable`: the connection failed. The call may have counted.
 * - `refused`: it answered with a problem, see `status`: 401, 403 and 404 are about the token, 400, 413 and 422 about what was
 *   asked, 429 is the caller's own limit.
 * - `bad-reply`: something answered, but not the decision API. A redirect is such an answer, and is not followed.
 */
export type ApiErrorCode = 'timeout' | 'unreachable' | 'refused' | 'bad-reply'

/** The decision API gave no decision. The text never holds the token, nor anything of what was asked. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ApiErrorCode
  /** Of the answer, where there was one. */
  readonly status: number | undefined
  readonly problem: Problem | undefined

  constructor(
    code: ApiErrorCode,
    message: string,
    { status, problem, cause }: { status?: number; problem?: Problem; cause?: unknown } = {},
  ) {
    super(`${code}: ${message}`, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status
    this.problem = problem
  }
}
