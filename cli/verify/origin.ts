/** The app must not be reachable without Sluice. */
import { ANSWER } from '../../src/features/verify/field.ts'
import { reasonOf } from './client.ts'
import { type Finding, ok, problem } from './finding.ts'

const TIMEOUT_MS = 10_000

/** Asks the origin directly, without a token. */
export async function checkOrigin(origin: string, host: string): Promise<Finding> {
  const name = 'origin'
  const shown = new URL(origin).origin
  let response: Response
  try {
    response = await fetch(origin, {
      headers: { 'user-agent': 'sluice-verify', 'x-forwarded-host': host },
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    await response.body?.cancel()
  } catch (error) {
    return ok(name, `${shown} does not answer from here (${reasonOf(error as Error)})`)
  }
  const { status, headers } = response
  if (headers.has('ratelimit-policy') || headers.has(ANSWER)) {
    return ok(name, `${shown} answers through Sluice`)
  }
  if (status === 401 || status === 403 || status === 421) {
    return ok(name, `${shown} refuses requests without Sluice (${status})`)
  }
  return problem(
    name,
    `${shown} answers ${status} without Sluice: a client can go around it. Let the origin accept only requests of the Worker`,
  )
}
