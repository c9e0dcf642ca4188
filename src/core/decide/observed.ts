import type { RuntimeContext } from '../base/runtime.ts'
import type { Matched } from './matched.ts'
import type { DecisionFact } from './observer.ts'
import type { LimiterParts, Outcome } from './question.ts'

/** Reports one decision, with where its request comes from, to the observer. A replay was reported by its first call. */
export function observe(
  { observer, nameSubject }: LimiterParts,
  { policies }: Matched,
  { decision, decidedBy, use, replayed, matches: decisive, binding }: Outcome,
  from: DecisionFact['from'],
  { env, waitUntil, context }: Pick<RuntimeContext, 'env' | 'waitUntil'> & { context?: unknown },
  verified = false,
): void {
  if (!observer || replayed) return
  const all = decisive ?? policies
  // A policy with several quotas has one limit in the decision: the one that binds.
  const matches = binding
    ? all.map((one) => binding.find(({ terms }) => terms.name === one.terms.name) ?? one)
    : all
  const fact = { decision, decidedBy, use, from, env, waitUntil, context, verified }
  observer.decided({ ...fact, matches, hash: nameSubject })
}
