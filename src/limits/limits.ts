/** Limits by name and key, for code that has no request: a job, a tool call, a server action, a message of a WebSocket. */
import { withRedisUrl } from '../core/base/redis-url.ts'
import type { Config } from '../core/config/parse.ts'
import type { Feature } from '../core/feature.ts'
import { fields as bans } from '../features/bans/fields.ts'
import * as stages from '../features/compile.ts'
import { declaration as concurrency } from '../features/concurrency/declaration.ts'
import { declaration as leases } from '../features/leases/declaration.ts'
import { fields as overrides } from '../features/overrides/fields.ts'
import { declaration as turns } from '../features/turns/declaration.ts'
import type { Limits } from './door.ts'
import { engineOf, namedLimits } from './named.ts'
import { type LimitsConfig, type LimitsOptions, type LimitTerms, parseLimits } from './terms.ts'

export type {
  KeyValue,
  KeyValues,
  LimitDecision,
  LimitKey,
  LimitOptions,
  LimitRuntime,
  Limits,
  RefundOptions,
} from './door.ts'

export type { LimitsConfig, LimitsOptions, LimitTerms } from './terms.ts'

// Not by the list of declarations: a bundler would keep the schemas of all.
const byDefault: readonly Feature[] = [
  { name: 'bans', fields: bans, compile: stages.bans },
  { ...concurrency, compile: stages.concurrency },
  { ...leases, compile: stages.leases },
  { name: 'overrides', fields: overrides, compile: stages.overrides },
  { name: 'slidingLog', compile: stages.slidingLog },
  { ...turns, compile: stages.turns },
  { name: 'denialCache', compile: stages.denialCache },
  { name: 'local', compile: stages.local },
]

/**
 * Makes limits that are decided by name and key.
 * @throws {ConfigError} immediately, if the terms or an option are invalid
 * @example
 * const quota = limits({ invites: { limit: 20, window: '1d' } })
 * const { allowed, retryAfterMs } = await quota.limit('invites', user.id)
 */
export function limits<Name extends string>(
  terms: Record<Name, LimitTerms>,
  options: LimitsOptions = {},
): Limits<Name> {
  const { env, ...settings } = withRedisUrl(options)
  const config = parseLimits(terms, settings, byDefault)
  return namedLimits(engineOf(config, byDefault), env)
}

/**
 * Parses the default export of a configuration of limits.
 * @throws {ConfigError} lists every problem
 * @internal
 */
export const parseLimitsConfig = ({ limits: terms, ...options }: LimitsConfig): Config =>
  parseLimits(terms, options, byDefault, 'limits.')
