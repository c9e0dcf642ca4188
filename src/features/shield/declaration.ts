import type { FeatureFields } from '../../core/config/feature.ts'
import { settings } from './fields.ts'

export const declaration: FeatureFields = { name: 'shield', settings }
