/** What refusals adds to a configuration. */
import type { FeatureFields } from '../../core/config/feature.ts'
import { checkRefusals } from './check.ts'

export const declaration: FeatureFields = { name: 'refusals', check: checkRefusals }
