/** Parses the fields that features add. */
import * as v from 'valibot'
import type { CheckedConfig, FeatureFields } from './feature.ts'
import { type AddProblem, isObject } from './schema/shapes.ts'

/** Parses the fields of these features, in place. A field with a problem is left out. */
export function parseOwned(
  { policies }: Pick<CheckedConfig, 'policies'>,
  features: readonly FeatureFields[],
  problem: AddProblem,
): void {
  for (const { fields } of features) {
    if (!fields) continue
    policies.forEach((valid, index) => {
      if (!isObject(valid)) return
      const policy = valid as Record<string, unknown>
      for (const [name, schema] of Object.entries(fields(policy))) {
        const { success, output, issues = [] } = v.safeParse(schema, policy[name])
        policy[name] = success ? output : undefined
        for (const { path = [], message } of issues) {
          const keys = path.map(({ key }) => key as string | number)
          const isKey = path.at(-1)?.origin === 'key'
          problem(['policies', index, name, ...keys], message, isKey)
        }
      }
    })
  }
}
