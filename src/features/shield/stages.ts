import type { Feature } from '../../core/feature.ts'
import { createShield } from './shield.ts'

export const compile: Feature['compile'] = ({ config, log }) =>
  config.shield ? { askShield: createShield(config.shield, log) } : {}
