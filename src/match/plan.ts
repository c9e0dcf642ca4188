import type { Config, Policy } from '../config/parse.ts'
import type { RequestView } from '../request/view.ts'
import { compileKey, type KeyReaders } from './key.ts'

/** Compiles the policy as it is for the plan of a request: one of another size. The counter stays the same, so a change of plan counts at once. */
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

/** A policy as it is for a plan; nothing where it has no such plan. */
export function ofPlan(policy: Policy, name: string): Policy | undefined {
  const { plan } = policy
  if (!plan || !Object.hasOwn(plan.limits, name)) return undefined
  const limit = plan.limits[name]!
  return { ...policy, limit, burst: plan.burstIsLimit ? limit : policy.burst }
}
