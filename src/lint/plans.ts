/** Finds plans in tables that no policy has. */
import type { ConfigRule, Found } from './facts.ts'

/** Reports each unknown plan of a table once, at its first entry. */
export const unknownPlans: ConfigRule = ({ config, written }) =>
  Object.entries(written.tables ?? {}).flatMap(([name, table]) => {
    const plans = config.policies.flatMap(({ plan }) => (plan?.table === name ? [plan] : []))
    if (plans.length === 0) return []
    const known = new Set(plans.flatMap(({ limits }) => Object.keys(limits)))
    const others = Object.entries(table).filter(([, plan]) => !known.has(plan))
    return [...new Set(others.map(([, plan]) => plan))].map((plan): Found => {
      const entries = others.filter((entry) => entry[1] === plan)
      const count = entries.length > 1 ? ` (${entries.length} entries)` : ''
      // The name of an entry may be the digest of an API key, which is too long for a message.
      const [first] = entries[0]!
      return {
        code: 'unknown-plan',
        path: `tables.${name}.${first.length > 32 ? `${first.slice(0, 32)}…` : first}`,
        message: `The table ${name} contains the plan "${plan}"${count}, and no policy that uses the table has this plan in limits.`,
        hint: `Add the plan to limits of the policy, or write one of: ${[...known].join(', ')}.`,
      }
    })
  })
