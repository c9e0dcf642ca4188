import type { Decision } from '../base/decision.ts'
import { GateError, type Problem } from './error.ts'

/**
 * What the gate answered.
 * @throws {GateError} where it refused, or something else answered
 */
export async function answerOf(response: Response): Promise<unknown> {
  const { status } = response
  const type = response.headers.get('content-type') ?? ''
  const isProblem = type.startsWith('application/problem+json')
  const isAnswer = type.startsWith('application/json') && (status === 200 || status === 429)
  if (!isProblem && !isAnswer) {
    await response.body?.cancel()
    throw notTheGate(status) // of a redirect 0, to a page in a browser
  }
  const body = parsed(await response.text())
  if (typeof body !== 'object' || body === null) throw notTheGate(status)
  if (isProblem) {
    const problem = body as Problem
    throw new GateError('refused', `the gate answered ${status}${hint(problem)}`, {
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

export const notTheGate = (status?: number) =>
  new GateError(
    'bad-reply',
    `something else than the gate answered${status === undefined ? '' : ` ${status}`}`,
    status === undefined ? {} : { status },
  )

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @throws {GateError} where it is none */
export function decisionOf(answer: unknown): Decision {
  const { allowed, reason, limits } = (answer ?? {}) as Partial<Decision>
  const is = typeof allowed === 'boolean' && typeof reason === 'string' && Array.isArray(limits)
  if (!is) throw notTheGate()
  return answer as Decision
}
