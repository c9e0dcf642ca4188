/** The fallback: answers a request if the store does not, by `onStoreError` of its policies. */
import type { Decision, Fallback } from '../base/decision.ts'
import type { Store } from '../connection/store.ts'
import { longestWait, type PolicyLimit } from './limit.ts'
import { type Charge, dependsOnResponse } from './settle.ts'

/** The answer of the fallback, and its charge in the local store. */
export type FallbackAnswer = Pick<Decision, 'allowed' | 'retryAfterMs'> & {
  fallback: Fallback
  charge?: Charge
}

/**
 * Answers by `onStoreError` of each enforced policy. `deny` refuses the request; otherwise the local store decides the policies with
 * `local`; otherwise the request is allowed. Shadow policies are ignored. The answer has no limit states.
 */
export async function answerWithoutStore(
  limits: PolicyLimit[],
  mode: 'take' | 'peek',
  local: Store,
): Promise<FallbackAnswer> {
  const limitsWith = (fallback: Fallback) =>
    limits.filter(({ policy }) => policy.mode === 'enforce' && policy.onStoreError === fallback)
  if (limitsWith('deny').length > 0) return { allowed: false, fallback: 'deny', retryAfterMs: null }
  const counted = limitsWith('local')
  if (counted.length === 0) return { allowed: true, fallback: 'allow', retryAfterMs: 0 }
  const { decidedAt, states } = await local.decide([{ mode, limits: counted }])
  const retryAfterMs = longestWait(states[0]!)
  const allowed = retryAfterMs === 0
  const isCharged = allowed && mode === 'take' && counted.some(dependsOnResponse)
  const charged = new Map(counted.map((limit) => [limit, decidedAt]))
  const charge = { limits: counted.filter(dependsOnResponse), charged, store: local }
  return { allowed, fallback: 'local', retryAfterMs, ...(isCharged && { charge }) }
}
