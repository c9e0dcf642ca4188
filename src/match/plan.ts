import type { Config, Policy } from '../config/parse.ts'
import type { RequestView } from '../request/view.ts'
import { compileKey, type KeyReaders } from './key.ts'

/** Compiles a function that returns the policy with the size of the request's plan. All plans share one counter, so a change of plan takes effect at once. */
export function compilePlan(
  policy: Policy,
  config: Pick<Config, 'tables' | 'caseSensitivePaths'>,
  readers: KeyReaders,
): (view: RequestView) => Policy | Promise<Policy> {
  const { plan } = policy
  if (!plan) return () => policy
  const read = compileKey([plan.key], policy.match.path ?? [], config, readers)
  const sizes = new Map(Object.keys(plan.limits).map((name) => [name, ofPlan(policy, name)!]))
  const table =
    plan.table === undefined ? undefined : new Map(Object.entries(config.tables[plan.table]!))
  return async (view) => {
    const value = (await read(view))[0]![1]
    const name = table && value !== undefined ? table.get(value) : value
    return (name !== undefined && sizes.get(name)) || policy
  }
}

/** Returns a policy with the size of a plan, or `undefined` if the policy does not have the plan. */
export function ofPlan(policy: Policy, name: string): Policy | undefined {
  const { plan } = policy
  if (!plan || !Object.hasOwn(plan.limits, name)) return undefined
  const limit = plan.limits[name]!
  return { ...policy, limit, burst: plan.burstIsLimit ? limit : policy.burst }
}
