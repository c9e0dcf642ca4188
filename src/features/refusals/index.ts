/** `sluice/refusals`: responses of your own to refused requests. */
import type { Feature } from '../../core/feature.ts'
import { checkRefusals } from './check.ts'
import { write } from './write.ts'

export type { RefusalOptions } from '../../core/config/schema/refusal-fields.ts'

/**
 * Lets `refusal` of the configuration and of policies be an object with a status, bodies and headers. `createGateway` has this feature by
 * default.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m', refusal: { body: { text: 'Wait {{retryAfter}} s.' } } }],
 *   use: [refusals()],
 * })
 */
export const refusals = (): Feature => ({
  name: 'refusals',
  check: checkRefusals,
  compile: () => ({ refuse: write }),
})
