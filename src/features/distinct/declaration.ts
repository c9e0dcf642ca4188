import { checkPolicies, type FeatureFields } from '../../core/config/feature.ts'
import type { Policy } from '../../core/config/parse.ts'

export const declaration: FeatureFields = {
  name: 'distinct',
  check: (config, problem) =>
    checkPolicies(config, problem, ({ algorithm, distinct, key, cost, lease }, report) => {
      if (!distinct) return
      if (algorithm && algorithm !== 'distinct')
        report(['algorithm'], 'no value (distinct counts each value from its last use)')
      const part = JSON.stringify(distinct)
      if (key?.some((one) => JSON.stringify(one) === part))
        report(
          ['distinct'],
          'a part that key does not have (each value would have a quota of its own)',
        )
      if (cost && costs(cost)) report(['cost'], 'no value (each different value costs 1)')
      if (lease) report(['lease'], 'no value (an isolate does not know which values count)')
    }),
}

const costs = ({ otherwise, rules, ...others }: Policy['cost']) =>
  otherwise !== 1 || rules.length > 0 || Object.values(others).some(Boolean)
