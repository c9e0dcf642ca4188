/** Cloudflare's rate limit binding in front of the store. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { createShield } from './shield.ts'

/** Lets a configuration have a `shield`. */
export const shield = (): Feature => ({
  ...declaration,
  compile: ({ config, log }) =>
    config.shield ? { askShield: createShield(config.shield, log) } : {},
})
