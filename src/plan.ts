import { compileKey, type KeyReaders } from './key.ts'
import type { Config, Policy } from './policy.ts'
import type { Seen } from './seen.ts'

/** Compiles the policy as it is for the plan of a request: one of another size. The counter stays the same, so a change of plan counts at once. */
export function compilePlan(
  policy: Policy,
  config: Pick<Config, 'tables' | 'caseSensitivePaths'>,
  readers: KeyReaders,
): (seen: Seen) => Policy | Promise<Policy> {
  const { plan } = policy
  if (!plan) return () => policy
  const read = compileKey([plan.key], policy.match.path ?? [], config, readers)
  const ofLimit = (limit: number): Policy => ({
    ...policy,
    limit,
    burst: plan.burstIsLimit ? limit : policy.burst,
  })
  const sizes = new Map(Object.entries(plan.limits).map(([name, limit]) => [name, ofLimit(limit)]))
  const table =
    plan.table === undefined ? undefined : new Map(Object.entries(config.tables[plan.table]!))
  return async (seen) => {
    const value = (await read(seen))[0]![1]
    const name = table && value !== undefined ? table.get(value) : value
    return (name !== undefined && sizes.get(name)) || policy
  }
}
