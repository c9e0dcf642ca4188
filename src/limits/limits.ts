/** Limits by name and key, for code that has no request: a job, a tool call, a server action, a message of a WebSocket. */
import type { Config } from '../core/config/parse.ts'
import type { Feature } from '../core/feature.ts'
import { declaration as bansFields } from '../features/bans/declaration.ts'
import { compile as bans } from '../features/bans/stages.ts'
import { declaration as concurrencyFields } from '../features/concurrency/declaration.ts'
import { compile as concurrency } from '../features/concurrency/stages.ts'
import { declaration as leasesFields } from '../features/leases/declaration.ts'
import { compile as leases } from '../features/leases/stages.ts'
import { declaration as overridesFields } from '../features/overrides/declaration.ts'
import { compile as overrides } from '../features/overrides/stages.ts'
import { declaration as slidingLogFields } from '../features/sliding-log/declaration.ts'
import { compile as slidingLog } from '../features/sliding-log/stages.ts'
import { declaration as turnsFields } from '../features/turns/declaration.ts'
import { turns } from '../features/turns/stages.ts'
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

const byDefault: readonly Feature[] = [
  { ...bansFields, compile: bans },
  { ...concurrencyFields, compile: concurrency },
  { ...leasesFields, compile: leases },
  { ...overridesFields, compile: overrides },
  { ...slidingLogFields, compile: slidingLog },
  { ...turnsFields, compile: turns },
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
  { env, ...options }: LimitsOptions = {},
): Limits<Name> {
  const config = parseLimits(terms, options, byDefault)
  return namedLimits(engineOf(config, byDefault), env)
}

/**
 * Parses the default export of a configuration of limits.
 * @throws {ConfigError} lists every problem
 * @internal
 */
export const parseLimitsConfig = ({ limits: terms, ...options }: LimitsConfig): Config =>
  parseLimits(terms, options, byDefault, 'limits.')
