import { checkPolicies, type FeatureFields } from '../../core/config/feature.ts'
import { fields } from './fields.ts'

const WHY = {
  concurrency: 'a slot is free when another request ends, and nobody knows when',
  distinct: 'the time at which a value may come back depends on its values',
}

export const declaration: FeatureFields = {
  name: 'turns',
  fields,
  check: (config, problem) =>
    checkPolicies(config, problem, ({ wait, algorithm, lease }, report) => {
      if (wait === undefined) return
      const why = WHY[algorithm as keyof typeof WHY]
      if (why) report(['wait'], `no value (${why})`)
      if (lease) report(['lease'], 'no value (the place of a request that waits is in the store)')
    }),
}
