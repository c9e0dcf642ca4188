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
  let matches = decisive ?? policies.filter(isMatch)
  // A policy with several quotas has one limit in the decision: the one that binds.
  if (matches.length > decision.limits.length) {
    const binding = new Map(decision.limits.map((one) => [one.policy, bindingMatch.get(one)]))
    matches = matches.map((one) => binding.get(one.policy.name) ?? one)
  }
  observer.decided({
    decision,
    decidedBy,
    matches,
    use,
    from,
    hash,
    env,
    waitUntil,
    context,
    verified,
  })
}
