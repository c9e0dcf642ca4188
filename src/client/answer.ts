import type { Decision } from '../base/decision.ts'
import { ApiError, type Problem } from './error.ts'

/**
 * What the decision API answered.
 * @throws {ApiError} where it refused, or something else answered
 */
export async function answerOf(response: Response): Promise<unknown> {
  const { status } = response
  const type = response.headers.get('content-type') ?? ''
  const isProblem = type.startsWith('application/problem+json')
  const isAnswer = type.startsWith('application/json') && (status === 200 || status === 429)
  if (!isProblem && !isAnswer) {
    await response.body?.cancel()
    throw notTheApi(status) // of a redirect 0, to a page in a browser
  }
  const body = parsed(await response.text())
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

/** What is wrong first, and not what stood there: that may be a client's name. */
function hint({ errors }: Problem): string {
  const { path, expected } = (Array.isArray(errors) && errors[0]) || {}
  return path && expected ? `, ${path}: expected ${expected}` : ''
}

export const notTheApi = (status?: number) =>
  new ApiError(
    'bad-reply',
    `something else than the decision API answered${status === undefined ? '' : ` ${status}`}`,
    status === undefined ? {} : { status },
  )

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @throws {ApiError} where it is none */
export function decisionOf(answer: unknown): Decision {
  const { allowed, reason, limits } = (answer ?? {}) as Partial<Decision>
  const is = typeof allowed === 'boolean' && typeof reason === 'string' && Array.isArray(limits)
  if (!is) throw notTheApi()
  return answer as Decision
}
