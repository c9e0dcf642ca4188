/** Tables that name plans. */
import type { ConfigRule, Found } from './facts.ts'

/** Finds each plan of a table that has no effect once, at the first entry that names it. */
export const unknownPlans: ConfigRule = ({ config, written }) =>
  Object.entries(written.tables ?? {}).flatMap(([name, table]) => {
    const plans = config.policies.flatMap(({ plan }) => (plan?.table === name ? [plan] : []))
    if (plans.length === 0) return []
    const known = new Set(plans.flatMap(({ limits }) => Object.keys(limits)))
    const others = Object.entries(table).filter(([, plan]) => !known.has(plan))
    return [...new Set(others.map(([, plan]) => plan))].map((plan): Found => {
      const entries = others.filter((entry) => entry[1] === plan)
      const count = entries.length > 1 ? ` (${entries.length} entries)` : ''
      // The name of an entry may be the digest of an API key: long, and of no use to a reader.
      const [first] = entries[0]!
      return {
        code: 'unknown-plan',
        path: `tables.${name}.${first.length > 32 ? `${first.slice(0, 32)}…` : first}`,
        message: `The table ${name} names the plan "${plan}"${count}, and no policy that uses the table has it in its limits.`,
        hint: `Add it to the limits of the policy, or write one of: ${[...known].join(', ')}.`,
      }
    })
  })
