import { ConfigError, type ConfigProblem } from '../base/errors.ts'
import type { Config, Policy } from '../config/parse.ts'

/** Policies of the configurations made in this run of the event loop, by where their counters are. */
const configured = new Map<string, Policy[]>()

/**
 * Refuses a configuration whose policies share counters in Redis with those of another one and disagree on the terms: the smaller
 * limit would refuse what only the larger one has counted.
 *
 * It compares the configurations made in one synchronous run, as all modules of a Worker are evaluated in one. A hot reload, or
 * the next test, comes in a later run. It replaces a configuration, so it is not compared with it.
 * @throws {ConfigError} naming every policy that disagrees
 */
export function checkCounterConflicts({ namespace, policies, shards, hashKeys }: Config): void {
  // The parts of the key, without functions: two functions may return the same name.
  const placeOf = ({ name, key }: Policy) =>
    JSON.stringify([namespace, shards, hashKeys, name, key])
  const problems = policies.flatMap((policy, index): ConfigProblem[] => {
    const others = configured.get(placeOf(policy)) ?? []
    const difference = others.flatMap((other) => differenceOf(policy, other) ?? [])[0]
    if (!difference) return []
    const { field, here, there } = difference
    const name = JSON.stringify(policy.name)
    const expected = `${there}, as the policy ${name} of another rateLimiter() or createGateway() has it (both count in one place in Redis: give this one another name, or one of the two configurations a namespace)`
    return [{ path: `policies[${index}].${field}`, expected, got: here }]
  })
  if (problems.length > 0) throw new ConfigError(problems)

  if (configured.size === 0) queueMicrotask(() => configured.clear())
  for (const policy of policies) {
    const place = placeOf(policy)
    configured.set(place, [...(configured.get(place) ?? []), policy])
  }
}

interface Difference {
  field: string
  here: string
  there: string
}

/** The first of the terms that two policies of one name and key disagree on, where they share its state. */
function differenceOf(one: Policy, other: Policy): Difference | undefined {
  const terms: [field: string, here: unknown, there: unknown][] = []
  if (one.tag === other.tag) {
    terms.push(
      ['limit', one.limit, other.limit],
      ['burst', one.burst, other.burst],
      ['limits', one.plan?.limits, other.plan?.limits],
    )
  }
  // Bans have a state for each name, whatever the algorithm and the window.
  if (one.penalty && other.penalty) terms.push(['penalty', one.penalty, other.penalty])
  for (const [field, ...values] of terms) {
    const [here, there] = values.map((value) => (value ? JSON.stringify(value) : 'none'))
    if (here !== there) return { field, here: here!, there: there! }
  }
  return undefined
}
