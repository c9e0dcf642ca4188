import { checkPolicies, type FeatureFields } from '../../core/config/feature.ts'

const SLOT = 'no value (a slot is released when its request ends)'
const NOT_LOCAL = 'allow or deny (an isolate cannot count the slots of other isolates)'

export const declaration: FeatureFields = {
  name: 'concurrency',
  check: (config, problem) =>
    checkPolicies(config, problem, ({ algorithm, countOnly, cost, onStoreError }, report) => {
      if (algorithm !== 'concurrency') return
      if (countOnly) report(['countOnly'], SLOT)
      if (cost?.response) report(['cost', 'response'], SLOT)
      if (onStoreError === 'local') report(['onStoreError'], NOT_LOCAL)
    }),
}
