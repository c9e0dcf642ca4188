import { checkEntries } from '../../core/config/check-entries.ts'
import type { FeatureFields } from '../../core/config/feature.ts'

export const declaration: FeatureFields = {
  name: 'slidingLog',
  check: (config, problem) =>
    checkEntries(config, 'sliding-log', problem, ' (sliding-window allows more)'),
}
