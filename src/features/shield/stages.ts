import type { Feature } from '../../core/feature.ts'
import { createShield } from './shield.ts'

/** What it does, without what it adds to configurations. */
export const compile: Feature['compile'] = ({ config, log }) =>
  config.shield ? { askShield: createShield(config.shield, log) } : {}
