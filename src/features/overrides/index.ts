/** `sluice/overrides`: operators set the limits of single keys. */

import type { Overrides } from '../../core/base/override-endpoints.ts'
import { overrideEndpoints } from './endpoints.ts'

export type { Overrides } from '../../core/base/override-endpoints.ts'

/**
 * Makes the field `overrides` of a configuration, so that policies can have `overrides: true`, also those of a live document.
 * @example
 * defineConfig({
 *   policies: [{ name: 'per-user', limit: 100, window: '1m', key: 'header:x-user', overrides: true }],
 *   overrides: overrides(),
 * })
 */
export const overrides = (): Overrides => ({ endpoints: overrideEndpoints })
