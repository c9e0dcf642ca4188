/** The features with parameters that the fields of a configuration need. Each host has the others. */
import { contains } from '../base/contains.ts'
import type { CheckedConfig } from './feature.ts'
import { readsCredential, usesBody } from './schema/reads.ts'
import type { AddProblem } from './schema/shapes.ts'

const readsClaim = (value: unknown) => contains(value, ({ source }) => source === 'jwt')

type Test = (value: unknown, fields: Record<string, unknown>) => boolean

/** Values of the core's fields that need a feature, of policies and of the configuration. */
const needs: [feature: string, isNeeded: Test, ...fields: string[]][] = [
  ['bodies', (refusal) => typeof Object(refusal).body === 'string', 'refusal'],
  ['jwt', (_, { claim }) => claim !== undefined, 'limit'],
  ['jwt', (value) => readsCredential(value, 'jwt'), 'match', 'cost', 'reserve', 'allow', 'deny'],
  ['jwt', readsClaim, 'key', 'onMissingKey', 'distinct', 'plan'],
  [
    'bodies',
    usesBody,
    ...['key', 'onMissingKey', 'distinct', 'plan', 'match', 'cost', 'reserve', 'allow', 'deny'],
  ],
  [
    'bodies',
    (cost) => Object(cost).usage !== undefined || Object(cost).response === 'bytes',
    'cost',
  ],
]

/** Reports the first field that needs a feature which is not among those of `use`, for each feature. */
export function checkNeeds(
  config: CheckedConfig,
  use: readonly { name: string }[],
  problem: AddProblem,
): void {
  const reported = new Set(use.map(({ name }) => name))
  const check = (of: unknown, ...path: (string | number)[]) => {
    const fields: Record<string, unknown> = Object(of)
    for (const [feature, isNeeded, ...names] of needs) {
      const field = names.find((name) => isNeeded(fields[name], fields))
      if (field === undefined || reported.has(feature)) continue
      reported.add(feature)
      const use = `use: [${feature}()], with import { ${feature} } from 'sluice/features'`
      problem([...path, field], use)
    }
  }
  const { policies, shield } = config
  for (const [index, policy] of policies.entries()) check(policy, 'policies', index)
  check(config)
  check(shield, 'shield')
}
