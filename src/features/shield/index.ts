/** `sluice/shield`: Cloudflare's rate limit binding in front of the store. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { createShield } from './shield.ts'

/**
 * Lets a configuration have a `shield`. `createGateway` has this feature by default.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 *   shield: { binding: 'SHIELD', limit: 1000, period: '10s' },
 *   use: [shield()],
 * })
 */
export const shield = (): Feature => ({
  ...declaration,
  compile: ({ config, log }) =>
    config.shield ? { askShield: createShield(config.shield, log) } : {},
})
