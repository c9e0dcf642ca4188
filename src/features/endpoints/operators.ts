/** The endpoints of fields that each host has: `overrides`, and the list of bans of `penalty`. */
import type { Config } from '../../core/config/parse.ts'
import type { Endpoint } from '../../core/endpoint.ts'
import { bansEndpoint } from '../bans/endpoint.ts'
import { listsBans } from '../bans/watch.ts'
import { overrideEndpoints } from '../overrides/endpoints.ts'

export const operatorEndpoints = (config: Config): Endpoint[] =>
  listsBans(config) ? [...overrideEndpoints, bansEndpoint] : overrideEndpoints
