/** The endpoints of fields that each host has. A built configuration of a gateway imports those that it needs. */
import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { bansEndpoint } from '../bans/endpoint.ts'
import { listsBans } from '../bans/watch.ts'
import { overrideEndpoints } from '../overrides/endpoints.ts'

export const banList: Feature['compile'] = ({ config }) =>
  listsBans(config) ? { endpoints: [bansEndpoint] } : {}

export const keyLimits: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ overrides }) => overrides) ? { endpoints: overrideEndpoints } : {}

export const operators = (): Feature[] => [
  { name: 'banList', compile: banList },
  { name: 'keyLimits', compile: keyLimits },
]
