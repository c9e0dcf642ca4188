import { ConfigError, show } from '../core/base/errors.ts'
import { type Finding, type FindingCode, findingCodes } from '../core/config/findings.ts'
import type { ConfigOptions } from '../core/config/options.ts'
import { type Config, type Policy, parseConfig } from '../core/config/parse.ts'
import { defaultFields } from '../features/defaults.ts'
import { bodyWithoutOrigin, neverABody, smallChunk, unreadableBody } from './bodies.ts'
import { botConditions, botConditionsInList } from './bots.ts'
import { sharedCounters } from './counters.ts'
import { configDurations, policyDurations } from './durations.ts'
import { failedExpectations } from './expect/expectations.ts'
import { expectationsOf } from './expect/options.ts'
import { type ConfigRule, type Found, type ListRule, listed, type PolicyRule } from './facts.ts'
import { neverApplies, neverRefuses } from './idle.ts'
import { unknownMethods, unknownMethodsInList } from './methods.ts'
import { claimOfOtherKey, digestAsPlan, unknownPlans } from './plans.ts'
import { DUPLICATE, explained } from './problems.ts'
import { costNeverFits, globalKey, largeLog, neverCharges, noPolicies } from './quota.ts'
import { refusalOfConfig, refusalOfPolicy } from './refusals.ts'
import { reserveTakesAll, reserveUnreachable } from './reserve.ts'
import { tightShield } from './shield.ts'
import { largeLease, shortBan, shortWait, waitsOfCalls } from './sizes.ts'
import {
  ipv6ByAddress,
  ipv6Denied,
  loginFailsOpen,
  spoofableKey,
  spoofableList,
  spoofableMatch,
  takesAll,
} from './trust.ts'

type RulesByCode<Rule> = Partial<Record<FindingCode, Rule>>

const policyRules: RulesByCode<PolicyRule> = {
  'login-fails-open': loginFailsOpen,
  'global-key': globalKey,
  'cost-never-fits': costNeverFits,
  'never-charges': neverCharges,
  'never-applies': neverApplies,
  'never-refuses': neverRefuses,
  'short-wait': shortWait,
  'large-lease': largeLease,
  'short-ban': shortBan,
  'unknown-plan': digestAsPlan,
  'reserve-takes-all': reserveTakesAll,
  'reserve-unreachable': reserveUnreachable,
  'unknown-method': unknownMethods,
  'unlikely-duration': policyDurations,
  'ipv6-by-address': ipv6ByAddress,
  'spoofable-key': spoofableKey,
  'spoofable-match': spoofableMatch,
  'large-log': largeLog,
  'claim-of-other-key': claimOfOtherKey,
  'needs-bot-management': botConditions,
  'single-brace': refusalOfPolicy,
  'unreadable-body': unreadableBody,
  'never-a-body': neverABody,
  'small-chunk': smallChunk,
}
const listRules: RulesByCode<ListRule> = {
  'list-takes-all': takesAll,
  'ipv6-by-address': ipv6Denied,
  'spoofable-list': spoofableList,
  'unknown-method': unknownMethodsInList,
  'needs-bot-management': botConditionsInList,
}
const configRules: RulesByCode<ConfigRule> = {
  'no-policies': noPolicies,
  'unlikely-duration': configDurations,
  'unknown-plan': unknownPlans,
  'single-brace': refusalOfConfig,
  'expectation-fails': failedExpectations,
}
/** Those of a deployed gateway without an origin. */
const apiRules: RulesByCode<ConfigRule> = {
  'no-origin': () => ({
    path: 'origin',
    message:
      'The configuration has no origin: a gateway (createGateway) answers every admitted request with 500.',
    hint: "Set origin to 'zone' or to the URL of the origin. If the variable ORIGIN is set elsewhere, or the Worker serves only the decision API, write accept: 'no-origin'.",
  }),
  'body-without-origin': bodyWithoutOrigin,
  'wait-of-calls': waitsOfCalls,
}
const shieldRules = { 'tight-shield': tightShield }

/**
 * Finds mistakes and probable mistakes in a configuration. docs/reference/linter.md describes each code. Takes the options of the Worker
 * or of the middleware as written. If they do not parse, the findings are the problems of the parser.
 * @param others the options of the other limiters of the app, whose policies may share a counter with those of `options`
 * @example
 * expect(lint({ policies })).toEqual([]) // in the tests of your own app
 */
export const lint = (options: unknown, ...others: unknown[]): Finding[] =>
  findingsOf(options, asInGateway, true, others)

/** The findings of `lint` and those of a deployed gateway. @internal @param variables known variables of the Worker */
export const lintWorker = (
  options: unknown,
  variables: { ORIGIN?: unknown } = {},
  parse: Parse = asInGateway,
): Finding[] => findingsOf(options, parse, variables.ORIGIN)

/** The findings of `lint` in the configuration of an app, which its host parses. @internal */
export const lintApp = (options: unknown, parse: Parse): Finding[] =>
  findingsOf(options, parse, true)

/** The findings of limits by name and key: those of policies with the same terms. @internal */
export function lintLimits(options: unknown, parse: Parse): Finding[] {
  const { limits } = options as { limits: Record<string, object> }
  const named = Object.entries(limits)
  const policies = named.map(([name, terms]) => ({ ...terms, name }))
  const parsePolicies: Parse = () => {
    const config = parse(options)
    return { ...config, policies: config.policies.map(ofCalls) }
  }
  return findingsOf({ ...(options as object), policies }, parsePolicies, true).map((finding) => ({
    ...finding,
    path: finding.path.replace(/^policies\b(?:\[(\d+)\])?/, (_, index) =>
      index ? `limits.${named[index]![0]}` : 'limits',
    ),
  }))
}

/** A limit for the rules: each call brings its key, and may bring its cost. */
const ofCalls = (limit: Policy): Policy => ({
  ...limit,
  key: [{ source: 'function', read: () => limit.name }],
  cost: { ...limit.cost, header: 'cost' },
})

type Parse = (options: unknown) => Config

const asInGateway: Parse = (options) => parseConfig(options, defaultFields)

/** @param hasOrigin false for a gateway that has none besides that of its configuration */
function findingsOf(
  options: unknown,
  parse: Parse,
  hasOrigin: unknown,
  others: unknown[] = [],
): Finding[] {
  try {
    const config = parse(options)
    const written = options as ConfigOptions
    const { problems } = expectationsOf(written)
    if (problems) throw new ConfigError(problems)
    const { policies, accept, shield, origin } = config
    const facts = { config, written }
    const forPolicies = { ...policyRules, 'shared-counter': sharedCounters(others.flatMap(parsed)) }
    const forConfig = origin || hasOrigin ? configRules : { ...configRules, ...apiRules }
    return [
      ...policies.flatMap((policy, index) => {
        const at = `policies[${index}]`
        return findingsBy(forPolicies, policy.accept, `${at}.`, policy, at, facts)
      }),
      ...listed(facts).flatMap((entry) =>
        findingsBy(listRules, entry.accept, `${entry.at}.`, entry),
      ),
      ...findingsBy(forConfig, accept, '', facts),
      ...(shield ? findingsBy(shieldRules, shield.accept, 'shield.', shield, config) : []),
    ]
  } catch (error) {
    return problemsOf(error)
  }
}

function parsed(options: unknown): Config[] {
  try {
    return [asInGateway(options)]
  } catch (error) {
    problemsOf(error)
    return []
  }
}

/** Converts the problems of a `ConfigError` to findings. @internal */
export function problemsOf(error: unknown): Finding[] {
  if (!(error instanceof ConfigError)) throw error
  return error.problems.map((problem) => ({
    code: problem.expected === DUPLICATE ? 'duplicate-name' : 'invalid',
    path: problem.path,
    ...explained(problem),
  }))
}

/** The accepted codes that do not exist, and the findings that are not accepted. */
function findingsBy<Args extends unknown[]>(
  rules: RulesByCode<(...args: Args) => Found | Found[]>,
  accept: FindingCode[],
  at: string,
  ...args: Args
): Finding[] {
  const unknown = accept
    .filter((code) => !findingCodes.includes(code))
    .map((code): Finding => {
      const path = `${at}accept`
      const expected = `one of ${findingCodes.join(', ')}`
      return { code: 'invalid', path, ...explained({ path, expected, got: show(code) }) }
    })
  const found = Object.entries(rules).flatMap(([code, rule]) =>
    [rule(...args)].flat().map((one) => ({ code: code as FindingCode, ...one })),
  )
  return [...unknown, ...found.filter(({ code }) => !accept.includes(code))]
}
