import type { Feature } from '../../core/feature.ts'
import { slots } from '../../stores/cluster/cluster.ts'

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
  compile: () => slots,
})
