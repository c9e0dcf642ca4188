/** Makes the limiter of a configuration in normal form: an engine, and the rules by which requests become limits. */
import { createLog } from './base/log.ts'
import { needed } from './base/needed.ts'
import { type Soon, whenKnown } from './base/when-known.ts'
import type { Config } from './config/parse.ts'
import type { ScriptPart } from './connection/upstash/part.ts'
import { createEngine } from './decide/engine.ts'
import { type Feature, type Limiter, stagesOf } from './feature.ts'
import { keyReaders } from './program/key.ts'
import { compileMatcher, type Rules } from './program/match.ts'
import { addressReader } from './request/client-address.ts'

/**
 * @param features those of the configuration and of its host
 * @param lua the parts of the general script that the host needs besides those of features. Defaults to none
 * @param source the options of the configuration, and what parses others, for live policies. `parse` throws a `ConfigError`
 */
export function limiterOf(
  config: Config,
  features: readonly Feature[],
  lua?: readonly ScriptPart[],
  source?: { options: object; parse: (options: object) => Soon<Config> },
): Limiter {
  const log = createLog()
  const stages = stagesOf({ config, log }, features, lua)
  // All documents share the readers, so that new policies do not download an issuer's keys again.
  const readers = keyReaders(config, log, stages)
  const compiled = (config: Config): Rules => ({
    config,
    match: compileMatcher(config, log, stages, readers),
    sources: readers.sources,
  })
  const own = compiled(config)
  const { rules, observer } = stages
  if (config.policies.some(({ settles }) => settles)) needed(stages.settleLater, 'settling')
  return {
    ...createEngine(config, log, stages),
    readAddress: addressReader(config.clientAddress, log, stages),
    rulesOf:
      rules && source
        ? rules({
            own,
            options: source.options,
            compile: (changed) => whenKnown(source.parse(changed), compiled),
            observer,
          })
        : () => own,
    stages,
  }
}
