import type { Soon } from '../base/when-known.ts'
import type { Config, Policy } from '../config/parse.ts'
import type { RequestView } from '../request/view.ts'
import type { KeyReaders } from './source.ts'

export type SizeOf = (view: RequestView) => Soon<Policy>

/** Compiles the sizes of a policy by the plan of a request. `undefined` for a policy without plans. */
export type CompilePlan = (
  policy: Policy,
  config: Pick<Config, 'tables' | 'caseSensitivePaths'>,
  readers: KeyReaders,
) => SizeOf | undefined

/** Compiles the sizes of a policy by a claim. `undefined` for a policy without one. Without the claim, a request has the `planned` size. */
export type CompileClaim = (
  policy: Policy,
  readers: KeyReaders,
  planned: SizeOf | undefined,
) => SizeOf | undefined

/** Returns a policy with the size of a plan, or `undefined` if the policy does not have the plan. */
export function ofPlan(policy: Policy, name: string): Policy | undefined {
  const { plan } = policy
  if (!plan || !Object.hasOwn(plan.limits, name)) return undefined
  return { ...withLimit(policy, plan.limits[name]!), planName: name }
}

/** All limits of a policy share one counter, so a change takes effect at once. */
export const withLimit = (policy: Policy, limit: number): Policy => ({
  ...policy,
  limit,
  burst: policy.burstIsLimit ? limit : policy.burst,
})

/** The smallest, for a request that may have any of these sizes. */
export const smallest = (sizes: readonly Policy[]): Policy =>
  sizes.reduce((least, size) => (size.limit < least.limit ? size : least))
