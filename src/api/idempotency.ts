import { sha256 } from '../core/base/digest.ts'
import type { Idempotency } from '../core/decide/question.ts'
import type { Matched } from '../core/program/match.ts'
import { badRequest, unprocessable } from './problems.ts'

/** The time in which a repeated call gets the answer of the first, in ms. */
const FOR_MS = 60_000

/**
 * Reads `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07): 1 to 255 visible characters, a separate name space for each
 * caller. The fingerprint changes with the body, with the policies and with their terms, because a stored reply has only states, from
 * which other terms would give another answer.
 * @returns `undefined` without the field
 * @throws {Response} 400 if the field is invalid
 */
export async function idempotencyOf(
  { headers, url }: Request,
  caller: string,
  body: unknown,
  questions: { matched: Matched }[],
): Promise<Idempotency | undefined> {
  const key = headers.get('idempotency-key')
  if (key === null) return undefined
  if (!/^[!-~]{1,255}$/.test(key)) {
    throw badRequest('Idempotency-Key: expected 1 to 255 visible ASCII characters.')
  }
  const policies = questions.map(({ matched }) =>
    matched.policies.map(({ terms, cost, floor }) => {
      const { tag, mode, limit, burst, penalty, wait, overrides } = terms
      const own = [tag, mode, limit, burst, penalty, cost, floor]
      return wait || overrides ? [...own, wait, overrides] : own
    }),
  )
  const [name, fingerprint] = await Promise.all([
    sha256(`${caller} ${key}`),
    sha256(`${new URL(url).pathname} ${JSON.stringify([body, policies])}`),
  ])
  return { key: `once-${name.slice(0, 32)}`, fingerprint: fingerprint.slice(0, 32), forMs: FOR_MS }
}

export const replayedField = (isReplayed: boolean): Record<string, string> =>
  isReplayed ? { 'Idempotent-Replayed': 'true' } : {}

/** The problem of a key that was used with another body, or before the policies changed. */
export function keyConflict(): Response {
  const expected = 'a key that was not used in the last 60 s'
  return unprocessable(
    [{ path: 'Idempotency-Key', expected, got: 'a used key' }],
    'This Idempotency-Key was used with another body, or before the policies changed.',
  )
}
