/** Redis Cluster. */
import type { Feature } from '../../core/feature.ts'
import { bySlot, createCluster } from './cluster.ts'

/**
 * For a Redis Cluster behind one REST endpoint. The Worker splits batches and requests by the hash slots of their keys.
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m' }],
 *   use: [cluster()],
 * })
 */
export const cluster = (): Feature => ({
  name: 'cluster',
  compile: () => ({
    wrap: bySlot,
    spread: (store, onRefund) => createCluster(store, { onRefund }),
  }),
})
