/** A problem document of the decision API (RFC 9457). */
export interface Problem {
  type: string
  status: number
  title: string
  detail?: string
  /** The errors of the body, with status 422. */
  errors?: { path: string; expected: string; got: string }[]
  [member: string]: unknown
}

/**
 * The reason for a call without a decision.
 * - `timeout`: no answer within the deadline. The call may have charged.
 * - `unreachable`: the connection failed. The call may have charged.
 * - `refused`: the answer is a problem. By `status`: 401, 403 and 404 concern the token; 400, 413 and 422 the body.
 * - `bad-reply`: the answer does not come from the decision API. A redirect is such an answer; it is not followed.
 */
export type ApiErrorCode = 'timeout' | 'unreachable' | 'refused' | 'bad-reply'

/** The error of a call without a decision. The message never contains the token or values of the ask. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ApiErrorCode
  /** The status of the answer, if there was one. */
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
