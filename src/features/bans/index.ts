/** `sluice/bans`: bans a key after too many refusals. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { penalties } from './part.ts'

export type { PenaltyOptions } from './fields.ts'

/**
 * Lets policies have a `penalty`, also those of a live document. `createGateway` has this feature by default.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'login', limit: 5, window: '1m', penalty: { after: 10, within: '10m', ban: '1h' } }],
 *   use: [bans()],
 * })
 */
export const bans = (): Feature => ({
  ...declaration,
  compile: () => ({ lua: [penalties] }),
})
