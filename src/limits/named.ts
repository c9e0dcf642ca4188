/** Limits in normal form, decided by their names. */
import { createLog } from '../core/base/log.ts'
import type { Part } from '../core/base/part.ts'
import type { Config } from '../core/config/parse.ts'
import type { ScriptPart } from '../core/connection/upstash/part.ts'
import { createEngine, type Engine } from '../core/decide/engine.ts'
import { matchWith } from '../core/decide/matched.ts'
import { operations } from '../core/decide/operate.ts'
import { type Feature, featuresOf, stagesOf } from '../core/feature.ts'
import type { KeyValues } from '../core/program/explicit-key.ts'
import { noneOf } from './check.ts'
import { callsOf, Door, type Limits } from './door.ts'

/** @param env the environment of calls that have no other. Defaults to the process */
export function namedLimits<Name extends string>(engine: Engine, env?: object): Limits<Name> {
  const byName = new Map(engine.config.policies.map((policy) => [policy.name, policy]))

  function find(name: string, key: KeyValues) {
    const policy = byName.get(name)
    if (!policy) return noneOf('name', [...byName.keys()], name)
    const parts = [key].flat().map((value): Part => ['key', `${value}`])
    return matchWith(policy, parts)
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
