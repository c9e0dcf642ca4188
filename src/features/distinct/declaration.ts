/** The fields and checks that the feature distinct adds to configurations. */
import type { FeatureFields } from '../../core/config/feature.ts'
import { checkPolicies } from './check.ts'

export const declaration: FeatureFields = { name: 'distinct', check: checkPolicies }
