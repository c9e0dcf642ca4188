import { type Soon, whenKnown } from '../base/when-known.ts'
import type { Config, Policy } from '../config/parse.ts'
import type { RequestView } from '../request/view.ts'
import { compileKey, type KeyReaders } from './key.ts'
import type { Part } from './subject.ts'

/**
 * Compiles a function that returns the policy with the limit of the request: that of a claim, or else of its plan. All limits share one
 * counter, so a change takes effect at once. `undefined` if all requests have the limit of the policy.
 */
export function compileSize(
  policy: Policy,
  config: Pick<Config, 'tables' | 'caseSensitivePaths'>,
  readers: KeyReaders,
): ((view: RequestView) => Soon<Policy>) | undefined {
  const { claim } = policy
  const planned = compilePlan(policy, config, readers)
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

function compilePlan(
  policy: Policy,
  config: Pick<Config, 'tables' | 'caseSensitivePaths'>,
  readers: KeyReaders,
): ((view: RequestView) => Soon<Policy>) | undefined {
  const { plan } = policy
  if (!plan) return undefined
  const read = compileKey([plan.key], policy.match.path ?? [], config, readers)
  const sizes = new Map(Object.keys(plan.limits).map((name) => [name, ofPlan(policy, name)!]))
  const table =
    plan.table === undefined ? undefined : new Map(Object.entries(config.tables[plan.table]!))
  const sizeOf = ([part]: Part[]) => {
    const value = part![1]
    const name = table && value !== undefined ? table.get(value) : value
    return (name !== undefined && sizes.get(name)) || policy
  }
  return (view) => whenKnown(read(view), sizeOf)
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
