import { ConfigError, type ConfigProblem } from '../base/errors.ts'
import { databasesOf } from '../config/feature.ts'
import type { Config, Policy } from '../config/parse.ts'

/** The policies of all configurations made in this turn of the event loop, by the location of their counters. */
const configured = new Map<string, Policy[]>()

/**
 * Refuses a configuration with policies that share counters in Redis with another configuration, but have other terms. Such policies
 * would count each other's requests, and the smaller limit would refuse requests that the larger one admitted.
 *
 * Compares the configurations made in one turn of the event loop: the runtime evaluates all modules of a Worker in one turn. A hot
 * reload or the next test runs in a later turn and replaces the configuration, so it is not compared.
 * @throws {ConfigError} with every conflicting policy
 */
export function checkCounterConflicts(config: Config): void {
  const { namespace, policies, hashKeys } = config
  // JSON drops key functions, so all of them compare as equal: two functions may return the same values.
  const locationOf = ({ name, key }: Policy) =>
    JSON.stringify([namespace, databasesOf(config), hashKeys, name, key])
  const problems = policies.flatMap((policy, index): ConfigProblem[] => {
    const others = configured.get(locationOf(policy)) ?? []
    const difference = others.flatMap((other) => differenceOf(policy, other) ?? [])[0]
    if (!difference) return []
    const { field, here, there } = difference
    const name = JSON.stringify(policy.name)
    const expected = `${there}, as in the policy ${name} of another rateLimiter() or createGateway() (both policies use the same counter in Redis: rename this policy, or set a namespace in one of the two configurations)`
    return [{ path: `policies[${index}].${field}`, expected, got: here }]
  })
  if (problems.length > 0) throw new ConfigError(problems)

  if (configured.size === 0) queueMicrotask(() => configured.clear())
  for (const policy of policies) {
    const location = locationOf(policy)
    configured.set(location, [...(configured.get(location) ?? []), policy])
  }
}

interface Difference {
  field: string
  here: string
  there: string
}

/** The first field with state in common whose values differ in two policies with the same name and key. */
function differenceOf(one: Policy, other: Policy): Difference | undefined {
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
