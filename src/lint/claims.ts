/** Finds limits of a token that belong to another key than the token. */
import { labelOf } from '../core/program/key.ts'
import type { PolicyRule } from './facts.ts'

export const claimOfOtherKey: PolicyRule = ({ name, claim, key }, at) => {
  if (!claim || key.some(({ source }) => source === 'jwt' || source === 'function')) return []
  return {
    code: 'claim-of-other-key',
    path: `${at}.key`,
    message: `"${name}" reads its limit from the claim ${claim.claim}, and counts by ${key.map(labelOf).join(' + ')}: tokens with different limits share one counter.`,
    hint: 'Count by a claim of the token, such as jwt:sub.',
  }
}
