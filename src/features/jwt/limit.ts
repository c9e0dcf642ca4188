import { Unusable } from '../../core/base/unusable.ts'
import { type CompileClaim, ofPlan, smallest, withLimit } from '../../core/program/plan.ts'

/** The limit of a claim, or else that of the plan. Of a token that cannot be read for certain, the smallest of the plans and `otherwise`. */
export const compileClaim: CompileClaim = (policy, { claims }, planned) => {
  const { claim } = policy
  if (!claim) return undefined
  const plans = Object.keys(policy.plan?.limits ?? {})
  const least = smallest([policy, ...plans.map((name) => ofPlan(policy, name)!)])
  return async (view) => {
    const found = await claims(view)
    if (found instanceof Unusable && found.why === 'unreadable') return least
    const value = found instanceof Unusable ? undefined : found?.[claim.claim]
    // JSON writes a number from 1e21 on with an exponent. A claim without a verified token has no value.
    const isUnits = typeof value !== 'object' && /^\d+(e\+\d+)?$/.test(String(value))
    const units = isUnits ? Number(value) : 0
    if (units >= 1) return { ...withLimit(policy, Math.min(units, claim.max)), isOwn: true }
    return planned ? planned(view) : policy
  }
}
