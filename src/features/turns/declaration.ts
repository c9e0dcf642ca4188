import type { FeatureFields } from '../../core/config/feature.ts'
import { fields } from './fields.ts'

export const declaration: FeatureFields = {
  name: 'turns',
  fields,
  check({ policies }, problem) {
    policies.forEach((policy, index) => {
      const { wait, algorithm, lease } = policy ?? {}
      if (wait === undefined) return
      const add = (field: string, expected: string) => problem(['policies', index, field], expected)
      if (algorithm === 'concurrency')
        add('wait', 'no value (a slot is free when another request ends, and nobody knows when)')
      if (algorithm === 'distinct')
        add('wait', 'no value (the time at which a value may come back depends on its values)')
      if (lease) add('lease', 'no value (the place of a request that waits is in the store)')
    })
  },
}
