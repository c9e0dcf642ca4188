import type { Feature } from '../core/feature.ts'
import { apiKeys, clientValues, conditions, denialCache, forwarded, local } from './parts.ts'

/** All parts of the core, for a limiter that may have any configuration. */
export const coreParts = (): Feature[] =>
  Object.entries({ apiKeys, clientValues, conditions, denialCache, forwarded, local }).map(
    ([name, compile]) => ({ name, compile }),
  )
