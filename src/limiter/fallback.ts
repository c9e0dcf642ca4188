/** The answer to a request whose limits no store has answered for. */
import type { Decision, Fallback } from '../base/decision.ts'
import type { Store } from '../store/store.ts'
import { longestWait, type PolicyLimit } from './limit.ts'
import { type Charge, isOpen } from './settle.ts'

/** The answer of the fallback, and what it has charged to this isolate's own counters. */
export type FallbackAnswer = Pick<Decision, 'allowed' | 'retryAfterMs'> & {
  fallback: Fallback
  charge?: Charge
}

/**
 * Answers by each policy's `onStoreError`: `deny` wins, then what the local share says. Policies in shadow have no say. No number of
 * the answer belongs to a limit.
 */
export async function answerWithoutStore(
  limits: PolicyLimit[],
  mode: 'take' | 'peek',
  local: Store,
): Promise<FallbackAnswer> {
  const choosing = (choice: Fallback) =>
    limits.filter(({ policy }) => policy.mode === 'enforce' && policy.onStoreError === choice)
  if (choosing('deny').length > 0) return { allowed: false, fallback: 'deny', retryAfterMs: null }
  const counted = choosing('local')
  if (counted.length === 0) return { allowed: true, fallback: 'allow', retryAfterMs: 0 }
  const { decidedAt, states } = await local.decide([{ mode, limits: counted }])
  const retryAfterMs = longestWait(states[0]!)
  const allowed = retryAfterMs === 0
  const isCharged = allowed && mode === 'take' && counted.some(isOpen)
  const charged = new Map(counted.map((limit) => [limit, decidedAt]))
  const charge = { limits: counted.filter(isOpen), charged, store: local }
  return { allowed, fallback: 'local', retryAfterMs, ...(isCharged && { charge }) }
}
