/** Other spellings of a path must not open another quota. */
import type { VerifiedDecision } from '../../src/features/verify/verified.ts'
import type { Answer, Client } from './client.ts'
import { isRefusal, type Plan, type Round } from './round.ts'
import { type LocalMatcher, quotaOf, spellings } from './sample.ts'
import { listed } from './words.ts'

/** A part of the proof of a policy. */
export interface Result {
  text: string
  isWrong?: true
}

/** Sends other spellings of the path while the quota is used up. */
export async function checkSpellings(
  { policy, request, cost, states }: Plan,
  { nonce, refusal }: Round,
  { client, match }: { client: Client; match: LocalMatcher },
): Promise<Result | undefined> {
  if (policy.algorithm === 'concurrency') return undefined
  const quota = quotaOf(await match(request), policy)
  const endsAt = refusal!.receivedAt + (refusal!.decision!.retryAfterMs ?? Number.POSITIVE_INFINITY)
  const same: string[] = []
  for (const path of spellings(request.path)) {
    const other = { ...request, path }
    if (quota === undefined || quotaOf(await match(other), policy) !== quota) continue
    if (performance.now() + 2 * refusal!.ms > endsAt) break
    const answer = await client.send(other, { nonce, policy: policy.name, ...(states && { cost }) })
    if (!answer.decision) {
      if (isElsewhere(answer)) continue
      const text = `${path} is answered without Sluice, and ${request.path} is limited. A server in front routes other spellings past it`
      return { text, isWrong: true }
    }
    if (answer.decision.allowed && isBefore(answer.decision, refusal!.decision!)) {
      return { text: `${path} passes, and ${request.path} is refused`, isWrong: true }
    }
    if (isRefusal(answer)) same.push(path)
  }
  return same.length > 0 ? { text: `the same as ${listed(same)}` } : undefined
}

/** True for an answer that the app does not give to the path of the policy: a server normalizes the spelling, or does not know it. */
const isElsewhere = ({ status }: Answer) =>
  (status >= 300 && status < 400) || [400, 404, 405].includes(status)

/** True for a decision before the end of the wait of a refusal, by the clock of the store. */
const isBefore = ({ decidedAt }: VerifiedDecision, refused: VerifiedDecision) =>
  decidedAt !== undefined &&
  refused.decidedAt !== undefined &&
  decidedAt < refused.decidedAt + (refused.retryAfterMs ?? Number.POSITIVE_INFINITY)
