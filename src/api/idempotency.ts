import { sha256 } from '../base/digest.ts'
import { problem } from '../http/response.ts'
import type { Idempotency } from '../limiter/question.ts'
import { isMatch, type Matched } from '../match/match.ts'
import type { Caller } from './caller.ts'

/** How long a repeated call gets the answer of the first, in ms. */
const FOR_MS = 60_000

/**
 * What makes one of a call and its repetitions: the field `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07), 1 to 255
 * visible characters, belongs to whoever calls; the fingerprint tells another body under the same key, or other policies: what is
 * remembered are numbers, which would be told of those. Nothing without the field.
 */
export async function idempotencyOf(
  { headers, url }: Request,
  caller: Caller,
  body: unknown,
  questions: { matched: Matched }[],
): Promise<Idempotency | Response | undefined> {
  const key = headers.get('idempotency-key')
  if (key === null) return undefined
  if (!/^[!-~]{1,255}$/.test(key)) {
    return problem(400, {
      title: 'Bad Request',
      detail: 'Idempotency-Key: expected 1 to 255 visible ASCII characters.',
    })
  }
  const policies = questions.map(({ matched }) =>
    matched.policies.filter(isMatch).map(({ policy: { tag, mode } }) => [tag, mode]),
  )
  const [name, fingerprint] = await Promise.all([
    sha256(`${caller.id} ${key}`),
    sha256(`${new URL(url).pathname} ${JSON.stringify([body, policies])}`),
  ])
  return { key: `once-${name.slice(0, 32)}`, fingerprint: fingerprint.slice(0, 32), forMs: FOR_MS }
}

/** Where the same key comes with another body, or the policies have changed since. */
export const keyConflict = (): Response =>
  problem(422, {
    title: 'Unprocessable Content',
    detail: 'This Idempotency-Key was used for another body, or the policies have changed since.',
    errors: [
      { path: 'Idempotency-Key', expected: 'a key not used within 60 s', got: 'one that was' },
    ],
  })
