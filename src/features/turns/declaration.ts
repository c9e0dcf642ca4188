import { checkPolicies, type FeatureFields } from '../../core/config/feature.ts'
import { fields } from './fields.ts'

export const declaration: FeatureFields = {
  name: 'turns',
  fields,
  check: (config, problem) =>
    checkPolicies(config, problem, ({ wait, algorithm, lease }, report) => {
      if (wait === undefined) return
      if (algorithm === 'concurrency')
        report(
          ['wait'],
          'no value (a slot is free when another request ends, and nobody knows when)',
        )
      if (algorithm === 'distinct')
        report(['wait'], 'no value (the time at which a value may come back depends on its values)')
      if (lease) report(['lease'], 'no value (the place of a request that waits is in the store)')
    }),
}
