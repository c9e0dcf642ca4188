import { readsCredential } from '../config/schema/reads.ts'
import type { Feature } from '../feature.ts'
import { readsSource, apiKeySource as sources } from '../program/source.ts'
import { createApiKey } from '../request/api-key.ts'

export const apiKeys: Feature['compile'] = ({ config }) =>
  readsSource(config, sources) ||
  readsCredential([config.policies, config.allow, config.deny], 'apiKey')
    ? { createApiKey, sources }
    : {}
