/** `sluice/leases`: an isolate takes units of a busy quota in advance. */
import type { Leases } from '../../core/base/lease-layer.ts'
import { withLeases } from './leases.ts'

export type { Leases } from '../../core/base/lease-layer.ts'

/**
 * Makes the field `leases` of a configuration, so that policies can have a `lease`, also those of a live document.
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-tenant', limit: 100_000, window: '1m', key: 'header:x-tenant', lease: { max: 50, ttl: '5s' } }],
 *   leases: leases(),
 * })
 */
export const leases = (): Leases => ({ layer: withLeases as unknown as Leases['layer'] })
