/** `sluice/concurrency`: limits on requests in flight. */
import { apart } from '../../core/connection/upstash/apart.ts'
import type { Feature } from '../../core/feature.ts'
import { whenEnded } from '../../core/respond/body-end.ts'
import { declaration } from './declaration.ts'
import { slots } from './part.ts'

/**
 * Lets policies have `algorithm: 'concurrency'`, also those of a live document. `createGateway` has this feature by default.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'exports', algorithm: 'concurrency', limit: 2, window: '5m', key: 'header:x-tenant' }],
 *   use: [concurrency()],
 * })
 */
export const concurrency = (): Feature => ({
  ...declaration,
  compile: () => ({ lua: [slots, apart], whenEnded }),
})
