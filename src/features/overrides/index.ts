/** `sluice/overrides`: operators set the limits of single keys. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { overrideEndpoints } from './endpoints.ts'
import { limitsOfOperators } from './part.ts'

/**
 * Lets policies have `overrides: true`, also those of a live document. `createGateway` has this feature by default.
 * @example
 * rateLimiter({
 *   policies: [{ name: 'per-user', limit: 100, window: '1m', key: 'header:x-user', overrides: true }],
 *   use: [overrides()],
 * })
 */
export const overrides = (): Feature => ({
  ...declaration,
  compile: () => ({ endpoints: overrideEndpoints, lua: [limitsOfOperators] }),
})
