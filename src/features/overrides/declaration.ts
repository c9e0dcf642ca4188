import type { FeatureFields } from '../../core/config/feature.ts'
import { fields } from './fields.ts'

export const declaration: FeatureFields = { name: 'overrides', fields }
