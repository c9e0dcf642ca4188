/** `sluice/api-keys`: policies by API keys. */
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { createApiKey } from './reader.ts'

export type { ApiKeyOptions } from './fields.ts'

/**
 * Lets policies use `api-key` in keys and plans, also those of a live document. `createGateway` has this feature by default.
 * @example
 * rateLimiter({ policies: [{ name: 'per-key', limit: 1000, window: '1h', key: 'api-key' }], use: [apiKeys()] })
 */
export const apiKeys = (): Feature => ({
  ...declaration,
  compile: ({ config, log }) => ({ apiKey: createApiKey(config.apiKeys, log) }),
})
