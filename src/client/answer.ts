import type { Decision, LimitStatus } from '../core/base/decision.ts'
import { parsedJson } from '../core/base/json.ts'
import { ApiError, type Problem } from './error.ts'

/** Reads the answer of the decision API. @throws {ApiError} if the answer is a problem, or does not come from the decision API */
export async function answerOf(response: Response): Promise<unknown> {
  const { status } = response
  const type = response.headers.get('content-type') ?? ''
  const isProblem = type.startsWith('application/problem+json')
  const isAnswer = type.startsWith('application/json') && (status === 200 || status === 429)
  if (!isProblem && !isAnswer) {
    await response.body?.cancel()
    throw notTheApi(status) // In browsers, the status of a redirect is 0.
  }
  const body = parsedJson(await response.text())
  if (typeof body !== 'object' || body === null) throw notTheApi(status)
  if (isProblem) {
    const problem = body as Problem
    throw new ApiError('refused', `the decision API answered ${status}${hint(problem)}`, {
      status,
      problem,
    })
  }
  return body
}

/** Describes the first error. Omits the received value, because it may identify a client. */
function hint({ errors }: Problem): string {
  const { path, expected } = (Array.isArray(errors) && errors[0]) || {}
  return path && expected ? `, ${path}: expected ${expected}` : ''
}

const notTheApi = (status?: number) =>
  new ApiError(
    'bad-reply',
    `the answer is not from the decision API${status === undefined ? '' : ` (status ${status})`}`,
    status === undefined ? {} : { status },
  )

/** Checks that an answer is the status of limits. @throws {ApiError} if it is not */
export function statusOf(answer: unknown): LimitStatus {
  if (!Array.isArray((answer as Partial<LimitStatus>).limits)) throw notTheApi()
  return answer as LimitStatus
}

/** Checks that an answer is a decision. @throws {ApiError} if it is not */
export function decisionOf(answer: unknown): Decision {
  const { allowed, reason } = statusOf(answer) as Partial<Decision>
  if (typeof allowed !== 'boolean' || typeof reason !== 'string') throw notTheApi()
  return answer as Decision
}
