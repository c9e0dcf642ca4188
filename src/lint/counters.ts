/** Policies of several limiters that share a counter, and disagree on it. */
import type { Config, Policy } from '../core/config/parse.ts'
import type { PolicyRule } from './facts.ts'

/** The place of a policy's counter in Redis. JSON drops key functions, so that all of them are equal: two may return the same values. */
const locationOf = ({ name, key }: Policy, config: Config) =>
  JSON.stringify([config.namespace, name, key])

/** Finds policies that share a counter with a policy of another limiter, which has other terms: each counts the requests of the other. */
export const sharedCounters =
  (others: Config[]): PolicyRule =>
  (policy, at, { config }) => {
    const place = locationOf(policy, config)
    const sharing = others.flatMap((other) =>
      other.policies.filter((one) => locationOf(one, other) === place),
    )
    const [difference] = sharing.flatMap((other) => differenceOf(policy, other) ?? [])
    if (!difference) return []
    const { field, here, there } = difference
    return {
      path: `${at}.${field}`,
      message: `The policy "${policy.name}" of another limiter uses the same counter in Redis, and has ${there} instead of ${here}.`,
      hint: 'Rename one of the two policies, or set a namespace in one of the two configurations.',
    }
  }

/** The first field with state in common whose values differ in two policies with the same name and key. */
function differenceOf(one: Policy, other: Policy) {
  const terms: [field: string, here: unknown, there: unknown][] = []
  if (one.tag === other.tag) {
    terms.push(
      ['limit', one.claim ?? one.limit, other.claim ?? other.limit],
      ['burst', one.burst, other.burst],
      ['limits', one.plan?.limits, other.plan?.limits],
    )
  }
  // Bans depend only on name and key, not on the algorithm or the window.
  if (one.penalty && other.penalty) terms.push(['penalty', one.penalty, other.penalty])
  for (const [field, ...values] of terms) {
    const [here, there] = values.map((value) => (value ? JSON.stringify(value) : 'none'))
    if (here !== there) return { field, here: here!, there: there! }
  }
  return undefined
}
