/** Limits by name and key, for code that has no request: a job, a tool call, a server action, a message of a WebSocket. */
import { createLog } from '../core/base/log.ts'
import type { Part } from '../core/base/part.ts'
import { show } from '../core/base/show.ts'
import type { Config } from '../core/config/parse.ts'
import type { ScriptPart } from '../core/connection/upstash/part.ts'
import { createEngine, type Engine } from '../core/decide/engine.ts'
import { matchWith } from '../core/decide/matched.ts'
import { operations } from '../core/decide/operate.ts'
import { type Feature, featuresOf, stagesOf } from '../core/feature.ts'
import type { KeyValues } from '../core/program/explicit-key.ts'
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
import { callsOf, Door, type Limits } from './door.ts'
import { type LimitsOptions, type LimitTerms, parseLimits } from './terms.ts'

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

export type { LimitsOptions, LimitTerms } from './terms.ts'

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
  const engine = engineOf(config, byDefault)
  const byName = new Map(config.policies.map((policy) => [policy.name, policy]))

  function find(name: string, key: KeyValues) {
    const policy = byName.get(name)
    if (!policy) return { path: 'name', expected: oneOf([...byName.keys()]), got: show(name) }
    const values = Array.isArray(key) ? key : [key]
    return matchWith(
      policy,
      values.map((value) => ['key', `${value}`] satisfies Part),
    )
  }
  return callsOf(new Door(engine, find, { env }))
}

/**
 * @param lua the parts of the script that the limits need besides those of features. Defaults to none
 * @internal
 */
export function engineOf(
  config: Config,
  byDefault: readonly Feature[],
  lua: readonly ScriptPart[] = [],
): Engine {
  const log = createLog()
  const features = featuresOf(config, byDefault)
  return createEngine(config, log, stagesOf({ config, log }, features, [operations, ...lua]))
}

const oneOf = (names: string[]) => names.map((name) => JSON.stringify(name)).join(' or ')
