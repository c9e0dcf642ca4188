/** `sluice/leases`: an isolate takes units of a busy quota in advance. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { withLeases } from './leases.ts'

/**
 * Lets policies have a `lease`, also those of a live document. `createGateway` has this feature by default.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'per-tenant', limit: 100_000, window: '1m', key: 'header:x-tenant', lease: { max: 50, ttl: '5s' } }],
 *   use: [leases()],
 * })
 */
export const leases = (): Feature => ({
  ...declaration,
  compile: () => ({ layer: withLeases }),
})
