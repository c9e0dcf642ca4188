import { checkEntries } from '../../core/config/check-entries.ts'
import type { FeatureFields } from '../../core/config/feature.ts'

const SLOT = 'no value (a slot is released when its request ends)'

export const declaration: FeatureFields = {
  name: 'concurrency',
  check(config, problem) {
    checkEntries(config, 'concurrency', problem)
    config.policies.forEach((policy, index) => {
      if (policy?.algorithm !== 'concurrency') return
      const report = (expected: string, ...path: string[]) =>
        problem(['policies', index, ...path], expected)
      if (policy.countOnly) report(SLOT, 'countOnly')
      if (policy.cost?.response) report(SLOT, 'cost', 'response')
      if (policy.onStoreError === 'local') {
        report(
          'allow or deny (an isolate cannot count the slots of other isolates)',
          'onStoreError',
        )
      }
    })
  },
}
