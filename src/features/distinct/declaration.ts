/** What distinct adds to a configuration. */
import type { FeatureFields } from '../../core/config/feature.ts'
import { checkPolicies } from './check.ts'

export const declaration: FeatureFields = { name: 'distinct', check: checkPolicies }
