import type { Feature } from '../core/feature.ts'
import { apiKeys, clientValues, conditions } from './parts.ts'

/** All parts of the core, for a limiter that may have any configuration. */
export const coreParts = (): Feature[] => [
  { name: 'apiKeys', compile: apiKeys },
  { name: 'clientValues', compile: clientValues },
  { name: 'conditions', compile: conditions },
]
