/** Parses the fields that features add. */
import * as v from 'valibot'
import { isObject } from '../base/json.ts'
import type { FeatureFields } from './feature.ts'
import type { AddProblem } from './schema/shapes.ts'

type OwnedValues = Record<string, unknown>

/**
 * Parses the fields of these features in a configuration and in its policies, in place. A field with a problem is left out of a policy,
 * and is `null` in the configuration.
 * @returns the fields of the configuration
 */
export function parseOwned(
  config: OwnedValues,
  features: readonly FeatureFields[],
  problem: AddProblem,
): OwnedValues {
  const found: OwnedValues = {}
  for (const { fields, settings } of features) {
    if (settings) Object.assign(found, parseFields(config, settings(config), [], problem, null))
    if (!fields || !Array.isArray(config.policies)) continue
    config.policies.forEach((policy: unknown, index) => {
      if (isObject(policy)) parseFields(policy, fields(policy), ['policies', index], problem)
    })
  }
  return found
}

function parseFields(
  input: OwnedValues,
  entries: v.ObjectEntries,
  at: (string | number)[],
  problem: AddProblem,
  faulty?: null,
): OwnedValues {
  const found: OwnedValues = {}
  for (const [name, schema] of Object.entries(entries)) {
    const { success, output, issues = [] } = v.safeParse(schema, input[name])
    found[name] = success ? output : faulty
    for (const { path = [], message } of issues) {
      const keys = path.map(({ key }) => key as string | number)
      problem([...at, name, ...keys], message, path.at(-1)?.origin === 'key')
    }
  }
  Object.assign(input, found)
  return found
}
