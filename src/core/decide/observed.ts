import { isMatch, type Matched } from '../program/match.ts'
import type { RuntimeContext } from '../request/view.ts'
import { bindingMatch } from './limit.ts'
import type { DecisionFact } from './observer.ts'
import type { LimiterParts, Outcome } from './question.ts'

/**
 * Reports one decision to the observer. A replay was reported by its first call.
 * @param from where the request comes from
 * @param verified true for a request of `sluice verify`
 */
export function observe(
  { observed }: LimiterParts,
  { policies }: Matched,
  { decision, decidedBy, use, replayed, matches: decisive }: Outcome,
  from: DecisionFact['from'],
  { env, waitUntil, context }: Pick<RuntimeContext, 'env' | 'waitUntil'> & { context?: unknown },
  verified = false,
): void {
  if (!observed || replayed) return
  const { observer, hash } = observed
  const binding = new Map(decision.limits.map((one) => [one.policy, bindingMatch.get(one)]))
  const matches = (decisive ?? policies.filter(isMatch)).map(
    (one) => binding.get(one.policy.name) ?? one,
  )
  const request = { from, hash, env, waitUntil, context, verified }
  observer.decided({ decision, decidedBy, matches, use, ...request })
}
