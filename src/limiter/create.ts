import type { Bindings } from '../base/bindings.ts'
import { createLog, type Log } from '../base/log.ts'
import type { Config } from '../config/parse.ts'
import type { RuntimeContext } from '../request/view.ts'
import { checkCounterConflicts } from './counter-conflicts.ts'
import { limiterParts, type Parts } from './parts.ts'
import { createRules, type Rules } from './rules.ts'

/** What the ways in share: proxy, api and middleware decide by the same rules, on the same store. */
export interface Core {
  /** The deployment's. */
  config: Config
  log: Log
  /** The rules that hold now. */
  rulesOf: (runtime: RuntimeContext) => Rules
  partsOf: (env: Bindings) => Parts
}

/**
 * @param options what `config` was parsed from
 * @throws {ConfigError} where another configuration of the Worker shares counters with this one by other terms
 */
export function createCore(config: Config, options: object): Core {
  checkCounterConflicts(config)
  const log = createLog()
  return {
    config,
    log,
    rulesOf: createRules(config, options, log),
    partsOf: limiterParts(config, log),
  }
}
