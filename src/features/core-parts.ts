import type { Feature } from '../core/feature.ts'
import * as parts from './parts.ts'

/** All parts of the core, for a limiter that may have any configuration. */
export const coreParts = (): Feature[] =>
  Object.entries(parts).map(([name, compile]) => ({ name, compile }))
