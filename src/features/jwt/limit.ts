import { whenKnown } from '../../core/base/when-known.ts'
import { compileKey } from '../../core/program/key.ts'
import { type CompileClaim, withLimit } from '../../core/program/plan.ts'

/** The limit of a claim, or else that of the plan. */
export const compileClaim: CompileClaim = (policy, config, readers, planned) => {
  const { claim } = policy
  if (!claim) return undefined
  const read = compileKey([{ source: 'jwt', name: claim.claim }], [], config, readers)
  return (view) =>
    whenKnown(read(view), ([part]) => {
      // JSON writes a number from 1e21 on with an exponent. A claim without a verified token has no value.
      const units = /^\d+(e\+\d+)?$/.test(part![1] ?? '') ? Number(part![1]) : 0
      if (units >= 1) return { ...withLimit(policy, Math.min(units, claim.max)), isOwn: true }
      return planned ? planned(view) : policy
    })
}
