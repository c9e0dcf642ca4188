import { checkPolicies, type FeatureFields } from '../../core/config/feature.ts'
import { fields } from './fields.ts'

export const declaration: FeatureFields = {
  name: 'leases',
  fields,
  /** Reports fields that need a call for each request, which leases avoid. */
  check: (config, problem) =>
    checkPolicies(config, problem, ({ lease, algorithm, countOnly, penalty, cost }, report) => {
      if (!lease) return
      const why =
        algorithm === 'sliding-log'
          ? 'sliding-log guarantees the limit in every window'
          : algorithm === 'concurrency'
            ? 'a slot belongs to one request'
            : countOnly || cost?.response
              ? 'the cost is known only after the response'
              : penalty && 'leased units would bypass a ban'
      if (why) report(['lease'], `no value (${why})`)
    }),
}
