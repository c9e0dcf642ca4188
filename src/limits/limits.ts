/** Limits by name and key, for code that has no request: a job, a tool call, a server action, a message of a WebSocket. */
import type { Config } from '../core/config/parse.ts'
import type { Feature } from '../core/feature.ts'
import * as stages from '../features/compile.ts'
import * as declarations from '../features/declarations.ts'
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
  { ...declarations.bans, compile: stages.bans },
  { ...declarations.concurrency, compile: stages.concurrency },
  { ...declarations.leases, compile: stages.leases },
  { ...declarations.overrides, compile: stages.overrides },
  { ...declarations.slidingLog, compile: stages.slidingLog },
  { ...declarations.turns, compile: stages.turns },
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
