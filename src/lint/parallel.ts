/** A `check: 'parallel'` that never is. */

import type { Policy } from '../config/parse.ts'
import { SAFE } from '../gateway/speculative.ts'
import { isAlwaysMet, type PolicyRule } from './facts.ts'
import { unused } from './unused.ts'

export const neverParallel: PolicyRule = (policy, at, facts) => {
  const { name, match, mode, check } = policy
  if (check === 'before' || mode === 'shadow') return [] // which is to be enforced some day
  const found = (why: string, hint?: string) => [
    unused(`${at}.check`, `No request of "${name}" reaches the origin early: ${why}.`, hint),
  ]
  if (match.method?.every((method) => !SAFE.includes(method))) {
    return found(`none of its methods is one of ${SAFE.join(', ')}`)
  }
  const holding = facts.config.policies.find(
    (other) =>
      (other.check === 'before' || other.mode === 'shadow') &&
      isAlwaysMet(asEnforced(other), match, policy, facts),
  )
  if (!holding) return []
  const who = `"${holding.name}", which meets all of them too,`
  return holding.mode === 'shadow'
    ? found(`${who} is in shadow`, `Delete it, or wait until "${holding.name}" is enforced.`)
    : found(`${who} is checked before`, "Delete it, or set check to 'parallel' there too.")
}

/** In shadow it skips those whom it would refuse for what they lack. */
const asEnforced = ({ mode, onMissingKey, ...policy }: Policy): Policy => ({
  ...policy,
  mode: 'enforce',
  onMissingKey: mode === 'shadow' && onMissingKey === 'refuse' ? 'skip' : onMissingKey,
})
