import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { withLeases } from './leases.ts'

export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ lease }) => lease) ? { layer: withLeases } : {}
