/** The features that the fields of a configuration need. */
import { contains } from '../base/contains.ts'
import type { CheckedConfig } from './feature.ts'
import { owners, settingOwners } from './owners.ts'
import { type AddProblem, isObject } from './schema/shapes.ts'
import { usesBody } from './schema/uses-body.ts'
import { trustedNames } from './trusted-names.ts'

/** The features that `createGateway` has by default. */
export const inGateway = [
  'bans',
  'concurrency',
  'headerSets',
  'leases',
  'live',
  'overrides',
  'plans',
  'refusals',
  'shield',
  'slidingLog',
]

const readsClaim = (value: unknown) => contains(value, ({ source }) => source === 'jwt')

/** True for a refusal in the error format of a protocol. */
const hasErrorBody = (refusal: unknown) => typeof Object(refusal).body === 'string'

const isSet = (value: unknown) => value !== undefined && value !== false

type Test = (value: unknown, policy: Record<string, unknown>) => boolean

/** Values of the core's fields of a policy that need a feature. */
const needs: [feature: string, isNeeded: Test, ...fields: string[]][] = [
  ['banList', (penalty) => Object(penalty).list === true, 'penalty'],
  ['concurrency', (algorithm) => algorithm === 'concurrency', 'algorithm'],
  ['distinct', isSet, 'distinct'],
  ['plans', isSet, 'plan'],
  ['slidingLog', (algorithm) => algorithm === 'sliding-log', 'algorithm'],
  ['refusals', isObject, 'refusal'],
  ['bodies', hasErrorBody, 'refusal'],
  ['jwt', (_, { claim }) => isSet(claim), 'limit'],
  ['jwt', readsClaim, 'key', 'onMissingKey', 'distinct', 'plan'],
  ['bodies', usesBody, 'key', 'onMissingKey', 'distinct', 'plan', 'match', 'cost', 'reserve'],
  [
    'bodies',
    (cost) => Object(cost).usage !== undefined || Object(cost).response === 'bytes',
    'cost',
  ],
]

/**
 * Reports the first field that needs a feature which is missing, for each feature.
 * @param names the features that there are
 */
export function checkNeeds(
  config: CheckedConfig,
  names: readonly string[],
  problem: AddProblem,
): void {
  const { policies, allow, deny, shield, headers, refusal, clientAddress } = config
  const reported = new Set(names)
  const report = (feature: string, isNeeded: boolean, ...path: (string | number)[]) => {
    if (!isNeeded || reported.has(feature)) return
    reported.add(feature)
    const entry = feature.replace(/[A-Z]/, (capital) => `-${capital.toLowerCase()}`)
    problem(path, `use: [${feature}()], with import { ${feature} } from 'sluice/${entry}'`)
  }
  policies.forEach((policy, index) => {
    const fields: Record<string, unknown> = Object(policy)
    for (const [field, feature] of Object.entries(owners)) {
      report(feature, isSet(fields[field]), 'policies', index, field)
    }
    for (const [feature, isNeeded, ...names] of needs) {
      for (const field of names) {
        report(feature, isNeeded(fields[field], fields), 'policies', index, field)
      }
    }
  })
  for (const [field, feature] of Object.entries(settingOwners)) {
    report(feature, isSet(config[field as 'shield']), field)
  }
  report('headerSets', headers?.some((set) => set !== 'draft-11') ?? false, 'headers')
  report('refusals', isObject(refusal), 'refusal')
  report('bodies', hasErrorBody(refusal), 'refusal')
  report('jwt', readsClaim(shield), 'shield', 'key')
  report('bodies', usesBody(shield), 'shield', 'key')
  report('bodies', usesBody(allow), 'allow')
  report('bodies', usesBody(deny), 'deny')
  const [named] = trustedNames(clientAddress)
  if (named) report('proxies', true, ...named[1])
}
