/** `sluice/refusals`: responses of your own to refused requests. */
import type { Refusals } from '../../core/config/schema/refusal.ts'
import { checkRefusals } from './check.ts'
import { write } from './write.ts'

export type { Refusals } from '../../core/config/schema/refusal.ts'
export type { RefusalOptions } from '../../core/config/schema/refusal-fields.ts'

/**
 * Makes the field `refusals` of a configuration, so that `refusal` of the configuration and of policies may be an object with a status,
 * bodies and headers.
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-ip', limit: 100, window: '1m', refusal: { body: { text: 'Wait {{retryAfter}} s.' } } }],
 *   refusals: refusals(),
 * })
 */
export const refusals = (): Refusals => ({ check: checkRefusals, write })
