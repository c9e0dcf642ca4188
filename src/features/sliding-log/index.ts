/** `sluice/sliding-log`: the algorithm that stores the time of every unit. */
import { apart } from '../../core/connection/upstash/apart.ts'
import { sliding_log as text } from '../../core/connection/upstash/script-text.ts'
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'

/**
 * Lets policies have `algorithm: 'sliding-log'`, also those of a live document. `createGateway` has this feature by default.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'per-ip', algorithm: 'sliding-log', limit: 100, window: '1m' }],
 *   use: [slidingLog()],
 * })
 */
export const slidingLog = (): Feature => ({
  ...declaration,
  compile: () => ({ lua: [{ text }, apart] }),
})
