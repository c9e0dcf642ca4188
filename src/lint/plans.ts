/** Finds plans in tables that no policy has, and limits of a token that belong to another key than the token. */
import { labelOf } from '../core/program/key.ts'
import type { ConfigRule, PolicyRule } from './facts.ts'

/** Reports each unknown plan of a table once, at its first entry. */
export const unknownPlans: ConfigRule = ({ config, written }) =>
  Object.entries(written.tables ?? {}).flatMap(([name, table]) => {
    const plans = config.policies.flatMap(({ plan }) => (plan?.table === name ? [plan] : []))
    if (plans.length === 0) return []
    const known = new Set(plans.flatMap(({ limits }) => Object.keys(limits)))
    const others = Object.entries(table).filter(([, plan]) => !known.has(plan))
    return [...new Set(others.map(([, plan]) => plan))].map((plan) => {
      const entries = others.filter((entry) => entry[1] === plan)
      const count = entries.length > 1 ? ` (${entries.length} entries)` : ''
      // The name of an entry may be the digest of an API key, which is too long for a message.
      const [first] = entries[0]!
      return {
        path: `tables.${name}.${first.length > 32 ? `${first.slice(0, 32)}…` : first}`,
        message: `The table ${name} contains the plan "${plan}"${count}, and no policy that uses the table has this plan in limits.`,
        hint: `Add the plan to limits of the policy, or write one of: ${[...known].join(', ')}.`,
      }
    })
  })

export const digestAsPlan: PolicyRule = ({ name, plan }, at) => {
  if (!plan || plan.table !== undefined) return []
  const { source } = plan.key
  if (source !== 'api-key' && !('digest' in plan.key && plan.key.digest)) return []
  const plans = Object.keys(plan.limits)
  if (plans.some((one) => /^[\da-f]{64}$/i.test(one))) return []
  return {
    path: `${at}.plan`,
    message: `"${name}" takes the SHA-256 of ${labelOf(plan.key)} for the name of the plan, and it is never ${plans.join(' or ')}: every client gets the default limit.`,
    hint: "Write plan: { key, table: 'customers' }, and the plan of each digest in tables.customers.",
  }
}

export const claimOfOtherKey: PolicyRule = ({ name, claim, key }, at) => {
  if (!claim || key.some(({ source }) => source === 'jwt' || source === 'function')) return []
  return {
    path: `${at}.key`,
    message: `"${name}" reads its limit from the claim ${claim.claim}, and counts by ${key.map(labelOf).join(' + ')}: tokens with different limits share one counter.`,
    hint: 'Count by a claim of the token, such as jwt:sub.',
  }
}
