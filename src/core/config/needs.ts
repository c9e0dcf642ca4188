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

type Test = (value: unknown, policy: Record<string, unknown>) => boolean

/** The fields of a policy that need a feature, with the values that do. */
const needs: [feature: string, field: string, isNeeded: Test][] = [
  ...Object.entries(owners).map(([field, feature]): [string, string, Test] => [
    feature,
    field,
    (value) => value !== undefined && value !== false,
  ]),
  ['banList', 'penalty', (penalty) => Object(penalty).list === true],
  ['concurrency', 'algorithm', (algorithm) => algorithm === 'concurrency'],
  ['distinct', 'distinct', (part) => part !== undefined],
  ['plans', 'plan', (plan) => plan !== undefined],
  ['slidingLog', 'algorithm', (algorithm) => algorithm === 'sliding-log'],
  ['refusals', 'refusal', isObject],
  ['bodies', 'refusal', hasErrorBody],
  ['jwt', 'limit', (_, { claim }) => claim !== undefined],
  ...['key', 'onMissingKey', 'distinct', 'plan'].map((field): [string, string, Test] => [
    'jwt',
    field,
    readsClaim,
  ]),
  ...['key', 'onMissingKey', 'distinct', 'plan', 'match', 'cost', 'reserve'].map(
    (field): [string, string, Test] => ['bodies', field, usesBody],
  ),
  [
    'bodies',
    'cost',
    (cost) => Object(cost).usage !== undefined || Object(cost).response === 'bytes',
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
  const { policies, allow, deny, shield, headers = [], refusal, clientAddress } = config
  const reported = new Set(names)
  const report = (feature: string, isNeeded: boolean, ...path: (string | number)[]) => {
    if (!isNeeded || reported.has(feature)) return
    reported.add(feature)
    const entry = feature.replace(/[A-Z]/, (capital) => `-${capital.toLowerCase()}`)
    problem(path, `use: [${feature}()], with import { ${feature} } from 'sluice/${entry}'`)
  }
  policies.forEach((policy, index) => {
    const fields: Record<string, unknown> = Object(policy)
    for (const [feature, field, isNeeded] of needs) {
      report(feature, isNeeded(fields[field], fields), 'policies', index, field)
    }
  })
  for (const [field, feature] of Object.entries(settingOwners)) {
    report(feature, config[field as 'shield'] !== undefined, field)
  }
  report(
    'headerSets',
    headers.some((set) => set !== 'draft-11'),
    'headers',
  )
  report('refusals', isObject(refusal), 'refusal')
  report('bodies', hasErrorBody(refusal), 'refusal')
  report('jwt', readsClaim(shield), 'shield', 'key')
  report('bodies', usesBody(shield), 'shield', 'key')
  report('bodies', usesBody(allow), 'allow')
  report('bodies', usesBody(deny), 'deny')
  const [named] = trustedNames(clientAddress)
  if (named) report('proxies', true, ...named[1])
}
