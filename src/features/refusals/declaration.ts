/** The fields and checks that the feature refusals adds to configurations. */
import type { FeatureFields } from '../../core/config/feature.ts'
import { checkRefusals } from './check.ts'

export const declaration: FeatureFields = { name: 'refusals', check: checkRefusals }
