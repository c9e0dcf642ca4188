import { type Soon, whenKnown } from '../base/when-known.ts'
import type { Config, Policy } from '../config/parse.ts'
import type { RequestView } from '../request/view.ts'
import { compileKey, type KeyReaders } from './key.ts'

/** Compiles a function that returns the policy in the size of the request's plan. `undefined` for a policy without plans. */
export type CompilePlan = (
  policy: Policy,
  config: Pick<Config, 'tables' | 'caseSensitivePaths'>,
  readers: KeyReaders,
) => ((view: RequestView) => Soon<Policy>) | undefined

/**
 * Compiles a function that returns the policy with the limit of the request: that of a claim, or else of its plan. All limits share one
 * counter, so a change takes effect at once. `undefined` if all requests have the limit of the policy.
 */
export function compileSize(
  policy: Policy,
  config: Pick<Config, 'tables' | 'caseSensitivePaths'>,
  readers: KeyReaders,
  compilePlan?: CompilePlan,
): ReturnType<CompilePlan> {
  const { claim } = policy
  const planned = compilePlan?.(policy, config, readers)
  if (!claim) return planned
  const read = compileKey([{ source: 'jwt', name: claim.claim }], [], config, readers)
  return (view) =>
    whenKnown(read(view), ([part]) => {
      // JSON writes a number from 1e21 on with an exponent. A claim without a verified token has no value.
      const units = /^\d+(e\+\d+)?$/.test(part![1] ?? '') ? Number(part![1]) : 0
      if (units >= 1) return { ...withLimit(policy, Math.min(units, claim.max)), isOwn: true }
      return planned ? planned(view) : policy
    })
}

/** Returns a policy with the size of a plan, or `undefined` if the policy does not have the plan. */
export function ofPlan(policy: Policy, name: string): Policy | undefined {
  const { plan } = policy
  if (!plan || !Object.hasOwn(plan.limits, name)) return undefined
  return { ...withLimit(policy, plan.limits[name]!), planName: name }
}

const withLimit = (policy: Policy, limit: number): Policy => ({
  ...policy,
  limit,
  burst: policy.burstIsLimit ? limit : policy.burst,
})
