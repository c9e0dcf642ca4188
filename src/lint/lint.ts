import { ConfigError, show } from '../core/base/errors.ts'
import { type Finding, type FindingCode, findingCodes } from '../core/config/findings.ts'
import type { ConfigOptions } from '../core/config/options.ts'
import { type Config, parseConfig } from '../core/config/parse.ts'
import { defaultFields } from '../features/defaults.ts'
import { bodyWithoutOrigin, neverABody, smallChunk, unreadableBody } from './bodies.ts'
import { botConditions, botConditionsInList } from './bots.ts'
import { sharedCounters } from './counters.ts'
import { configDurations, policyDurations } from './durations.ts'
import { failedExpectations } from './expect/expectations.ts'
import { expectationsOf } from './expect/options.ts'
import { type ConfigRule, type Facts, type Found, listed, type PolicyRule } from './facts.ts'
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

const policyRules = [
  loginFailsOpen,
  globalKey,
  costNeverFits,
  neverCharges,
  neverApplies,
  neverRefuses,
  shortWait,
  largeLease,
  shortBan,
  digestAsPlan,
  reserveTakesAll,
  reserveUnreachable,
  unknownMethods,
  policyDurations,
  ipv6ByAddress,
  spoofableKey,
  spoofableMatch,
  largeLog,
  claimOfOtherKey,
  botConditions,
  refusalOfPolicy,
  unreadableBody,
  neverABody,
  smallChunk,
]
const listRules = [takesAll, ipv6Denied, spoofableList, unknownMethodsInList, botConditionsInList]
const configRules = [noPolicies, configDurations, unknownPlans, refusalOfConfig, failedExpectations]

/**
 * Finds mistakes and probable mistakes in a configuration. docs/reference/linter.md describes each code. Takes the options of the Worker
 * or of the middleware as written. If they do not parse, the findings are the problems of the parser.
 * @param others the options of the other limiters of the app, whose policies may share a counter with those of `options`
 * @example
 * expect(lint({ policies })).toEqual([]) // in the tests of your own app
 */
export const lint = (options: unknown, ...others: unknown[]): Finding[] =>
  findingsOf(options, asInGateway, [], others)

/**
 * Returns the findings of `lint` and those that concern only a deployed gateway.
 * @internal
 * @param variables known variables of the Worker
 * @param parse parses the configuration as the gateway does
 */
export const lintWorker = (
  options: unknown,
  variables: { ORIGIN?: unknown } = {},
  parse: Parse = asInGateway,
): Finding[] =>
  findingsOf(options, parse, [
    (facts) =>
      facts.config.origin || variables.ORIGIN
        ? []
        : [NO_ORIGIN, bodyWithoutOrigin(facts), waitsOfCalls(facts)].flat(),
  ])

/**
 * Returns the findings of `lint` in the configuration of an app.
 * @internal
 * @param parse parses it as the host of the app does
 */
export const lintApp = (options: unknown, parse: Parse): Finding[] => findingsOf(options, parse, [])

type Parse = (options: unknown) => Config

const asInGateway: Parse = (options) => parseConfig(options, defaultFields)

const NO_ORIGIN: Found = {
  code: 'no-origin',
  path: 'origin',
  message:
    'The configuration has no origin: a gateway (createGateway) answers every admitted request with 500.',
  hint: "Set origin to 'zone' or to the URL of the origin. If the variable ORIGIN is set elsewhere, or the Worker serves only the decision API, write accept: 'no-origin'.",
}

function findingsOf(
  options: unknown,
  parse: Parse,
  workerRules: ConfigRule[],
  others: unknown[] = [],
): Finding[] {
  try {
    const config = parse(options)
    const { problems } = expectationsOf(options as ConfigOptions)
    if (problems) throw new ConfigError(problems)
    const facts = { config, written: options as ConfigOptions }
    return findingsIn(facts, workerRules, sharedCounters(others.flatMap(parsed)))
  } catch (error) {
    return problemsOf(error)
  }
}

/** A configuration, or nothing if it has an error. */
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

function findingsIn(facts: Facts, workerRules: ConfigRule[], shared: PolicyRule): Finding[] {
  const { policies, accept, shield } = facts.config
  return [
    ...policies.flatMap((policy, index) => {
      const at = `policies[${index}]`
      const found = [...policyRules, shared].flatMap((rule) => rule(policy, at, facts))
      return notAccepted(found, policy.accept, `${at}.`)
    }),
    ...listed(facts).flatMap((entry) => {
      const found = listRules.flatMap((rule) => rule(entry))
      return notAccepted(found, entry.accept, `${entry.at}.`)
    }),
    ...notAccepted(
      [...configRules, ...workerRules].flatMap((rule) => rule(facts)),
      accept,
      '',
    ),
    ...(shield
      ? notAccepted([tightShield(shield, facts.config)].flat(), shield.accept, 'shield.')
      : []),
  ]
}

/** The findings that are not accepted, and the accepted codes that do not exist. */
function notAccepted(found: Found[], accept: FindingCode[], at: string): Finding[] {
  const unknown = accept
    .filter((code) => !findingCodes.includes(code))
    .map((code): Finding => {
      const path = `${at}accept`
      const expected = `one of ${findingCodes.join(', ')}`
      return { code: 'invalid', path, ...explained({ path, expected, got: show(code) }) }
    })
  return [...unknown, ...found.filter(({ code }) => !accept.includes(code))]
}
