import { ConfigError } from '../base/errors.ts'
import type { Finding, FindingCode } from '../config/findings.ts'
import type { ConfigOptions } from '../config/options.ts'
import { parseConfig } from '../config/parse.ts'
import { type ConfigRule, type Facts, type Found, listed, type PolicyRule } from './facts.ts'
import { unknownMethods, unknownMethodsInList } from './methods.ts'
import { neverParallel } from './parallel.ts'
import { unknownPlans } from './plans.ts'
import { explained } from './problems.ts'
import {
  configDurations,
  costNeverFits,
  globalKey,
  largeLog,
  manyPolicies,
  neverCharges,
  noPolicies,
  policyDurations,
} from './quota.ts'
import { listedAway, redundant, takingAll, unreachable } from './reach.ts'
import { tightShield } from './shield.ts'
import {
  dodgeable,
  ipv6ByAddress,
  ipv6Denied,
  loginFailsOpen,
  spoofableKey,
  spoofableList,
} from './trust.ts'
import { unused, unusedCredentials, unusedInList, unusedInPolicy } from './unused.ts'

/** About the requests that a policy meets; of one that meets none they have nothing to say. */
const requestRules = [
  listedAway,
  redundant,
  dodgeable,
  loginFailsOpen,
  globalKey,
  unusedInPolicy,
  neverParallel,
]
const otherRules = [
  costNeverFits,
  neverCharges,
  unknownMethods,
  policyDurations,
  ipv6ByAddress,
  spoofableKey,
  largeLog,
  manyPolicies,
]
const listRules = [takingAll, ipv6Denied, spoofableList, unknownMethodsInList, unusedInList]
const configRules = [noPolicies, configDurations, unknownPlans, unusedCredentials]

/**
 * What in a configuration is surely or probably not meant, in its order: docs/linter.md has every code. Works on options as they are
 * written, of the Worker or of the middleware; those that do not parse have the parser's problems as findings.
 * @example
 * expect(lint({ policies })).toEqual([]) // in the tests of your own app
 */
export const lint = (options: unknown): Finding[] => findingsOf(options, undefined)

/**
 * The findings of `lint`, and those of a Worker that is deployed by itself: `npm run check`.
 * @param variables of the Worker, as far as they are known
 */
export const lintWorker = (options: unknown, variables: { ORIGIN?: unknown } = {}): Finding[] =>
  findingsOf(options, ({ config }) => (config.origin || variables.ORIGIN ? [] : [NO_ORIGIN]))

const NO_ORIGIN: Found = {
  code: 'no-origin',
  path: 'origin',
  message:
    'The configuration has no origin: the Worker answers every request that it admits with 500.',
  hint: "Write origin: 'zone', or the origin's URL. Where the variable ORIGIN names it, write accept: 'no-origin'.",
}

function findingsOf(options: unknown, workerRule: ConfigRule | undefined): Finding[] {
  try {
    const config = parseConfig(options)
    return findingsIn({ config, written: options as ConfigOptions }, workerRule)
  } catch (error) {
    return problemsOf(error)
  }
}

/** The problems that the parser throws, as findings. */
export function problemsOf(error: unknown): Finding[] {
  if (!(error instanceof ConfigError)) throw error
  return error.problems.map((problem): Finding => {
    const twice = problem.expected === 'a name that no other policy has'
    return {
      code: twice ? 'duplicate-name' : 'invalid',
      path: problem.path,
      ...explained(problem),
      ...(twice && {
        hint: 'Give it a name of its own: it stands in the RateLimit fields, and marks its counters.',
      }),
    }
  })
}

function findingsIn(facts: Facts, workerRule: ConfigRule | undefined): Finding[] {
  const { policies, accept } = facts.config
  // Whether a Worker has an origin concerns the Worker alone.
  const acceptable = workerRule ? accept : accept.filter((code) => code !== 'no-origin')
  return [
    ...policies.flatMap((policy, index) => {
      const at = `policies[${index}]`
      const run = (rules: PolicyRule[]) => rules.flatMap((rule) => rule(policy, at, facts))
      const never = unreachable(policy, at, facts)
      const found = [...never, ...(never.length > 0 ? [] : run(requestRules)), ...run(otherRules)]
      return withoutAccepted(found, policy.accept, `${at}.accept`, `"${policy.name}"`)
    }),
    ...listed(facts).flatMap((entry) => {
      const found = listRules.flatMap((rule) => rule(entry, facts))
      return withoutAccepted(found, entry.accept, `${entry.at}.accept`, entry.at)
    }),
    ...withoutAccepted(
      [...configRules, ...(workerRule ? [workerRule] : [])].flatMap((rule) => rule(facts)),
      acceptable,
      'accept',
      'The configuration',
    ),
    ...withoutAccepted(
      tightShield(facts),
      facts.config.shield?.accept ?? [],
      'shield.accept',
      'The shield',
    ),
  ]
}

/** Leaves out what is accepted; what is accepted and not there is found in its stead. */
function withoutAccepted(found: Found[], accept: FindingCode[], at: string, who: string) {
  const codes = found.map(({ code }) => code)
  return [
    ...found.filter(({ code }) => !accept.includes(code)),
    ...accept.flatMap((code, index) =>
      codes.includes(code)
        ? []
        : [unused(`${at}[${index}]`, `${who} accepts ${code}, and has no such finding.`)],
    ),
  ]
}
