/** Compiles conditions, paths, and the rules that depend on them. */
import type { Policy } from '../config/parse.ts'
import { compileCondition, compileRules } from './condition.ts'
import { compileCost } from './cost.ts'
import { compileCredentials } from './credentials.ts'
import type { KeyReaders } from './key.ts'
import { readingsOf } from './paths.ts'
import { compileReserve } from './reserve.ts'
import { type MatchConfig, usesPath } from './tells-apart.ts'

export const compileConditions = (config: MatchConfig, readers: KeyReaders) => ({
  allow: compileRules(config.allow, config),
  deny: compileRules(config.deny, config),
  withCredentials: compileCredentials(config, readers),
  /** Makes a view of a request for each reading of its path. */
  readingsOf: usesPath(config) ? readingsOf : undefined,
  ofPolicy: (policy: Policy) => ({
    mismatch: compileCondition(policy.match, config),
    costOf: compileCost(policy, config),
    shareOf: compileReserve(policy, config),
  }),
})

export type Conditions = ReturnType<typeof compileConditions>
