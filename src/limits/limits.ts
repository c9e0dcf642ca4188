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
import { bans } from '../features/bans/index.ts'
import { concurrency } from '../features/concurrency/index.ts'
import { leases } from '../features/leases/index.ts'
import { overrides } from '../features/overrides/index.ts'
import { slidingLog } from '../features/sliding-log/index.ts'
import { turns } from '../features/turns/index.ts'
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
  const byDefault = [bans(), concurrency(), leases(), overrides(), slidingLog(), turns()]
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

/** @param lua the parts of the script that the limits need besides those of features. Defaults to none */
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
