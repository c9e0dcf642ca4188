import { ConfigError } from './base/errors.ts'
import type { Log } from './base/log.ts'
import type { RuntimeContext } from './base/runtime.ts'
import type { Soon } from './base/when-known.ts'
import type { FeatureDeclaration } from './config/feature.ts'
import type { Config } from './config/parse.ts'
import type { ScriptPart } from './connection/upstash/part.ts'
import type { Engine, EngineStages } from './decide/engine.ts'
import type { Observer } from './decide/observer.ts'
import type { Endpoint } from './endpoint.ts'
import type { MatchStages, Rules } from './program/match.ts'
import type { VerifyStages } from './program/verified.ts'
import type { AddressStages, ReadAddress } from './request/client-address.ts'
import type { RefusalStages } from './respond/refusal.ts'
import type { SettleStages } from './settle-later.ts'

/** A feature of a limiter, in the field `use` of its configuration. */
export interface Feature extends FeatureDeclaration {
  /** Called once for each limiter. Returns only the stages that this configuration uses. @internal */
  compile(program: Program): Stages
}

/** What a feature may use while it compiles and later. */
export interface Program {
  readonly config: Config
  readonly log: Log
}

/** The places at which a feature takes part in a request. Each one has at most one feature, apart from those of `SHARED`. */
export interface Stages
  extends AddressStages,
    EngineStages,
    MatchStages,
    RefusalStages,
    SettleStages,
    VerifyStages {
  /** Returns why the body of a request is not readable; `undefined` for a readable body, or without one. For `sluice explain`. */
  bodyProblem?: (request: Request) => Promise<string | undefined>
  /** Returns a function for the rules in force. It never waits. */
  rules?: (deployed: Deployed) => (runtime: RuntimeContext) => Rules
  /** Endpoints of the decision API. */
  endpoints?: readonly Endpoint[]
  /** Answers requests for paths under `/_sluice/`, in the order of the features. */
  handlers?: readonly PathHandler[]
}

/** The rules of the deployment, for a feature that replaces them. */
export interface Deployed {
  own: Rules
  /** The options that they were made from. */
  options: object
  /** Makes the rules of other options. @throws {ConfigError} */
  compile: (options: object) => Soon<Rules>
  observer: Observer | undefined
}

/** Answers a request for a path under `/_sluice/`. Returns `undefined` for a path that it does not have. */
export type PathHandler = (
  path: string,
  request: Request,
  runtime: RuntimeContext,
  limiter: Limiter,
) => Promise<Response | undefined>

/** The rules and the store that gateway, decision API and middleware share. */
export interface Limiter extends Engine {
  readAddress: ReadAddress
  /** The rules in force: those of the live document if there is one, otherwise those of the deployment. */
  rulesOf: (runtime: RuntimeContext) => Rules
  stages: Stages
}

/** The stages that several features may have. */
const SHARED = ['endpoints', 'handlers', 'lua', 'sources']

export const featuresOf = ({ use }: Pick<Config, 'use'>, byDefault: readonly Feature[] = []) => {
  // `parseConfig` has checked that each one has `compile`. Its type does not name stages, which know the type of the configuration.
  const used = use as readonly Feature[]
  return [...byDefault.filter(({ name }) => !used.some((one) => one.name === name)), ...used]
}

/**
 * Compiles the features of a configuration, and the parts of the general script that the host needs besides theirs, to stages.
 * @throws {ConfigError} if two features have one stage
 */
export function stagesOf(
  program: Program,
  features: readonly Feature[] = featuresOf(program.config),
  hostLua: readonly ScriptPart[] = [],
): Stages {
  const owners = new Map<string, [feature: string, value: unknown]>()
  const stages: Stages = {}
  const endpoints: Endpoint[] = []
  const handlers: PathHandler[] = []
  const lua = new Set(hostLua)
  const sources = {}
  for (const feature of features) {
    const own = feature.compile(program)
    for (const [stage, value] of Object.entries(own)) {
      if (value === undefined || SHARED.includes(stage)) continue
      const [owner, first] = owners.get(stage) ?? []
      // The later of the two would replace the first without a word.
      if (owner && first !== value) {
        const expected = `${owner} or ${feature.name}, and not both`
        const hint = `Each of them has the stage ${stage}, which a limiter has once.`
        throw new ConfigError([{ path: 'use', expected, got: 'both', hint }])
      }
      owners.set(stage, [feature.name, value])
    }
    Object.assign(stages, own)
    Object.assign(sources, own.sources)
    if (own.endpoints) endpoints.push(...own.endpoints)
    if (own.handlers) handlers.push(...own.handlers)
    if (own.lua) for (const part of own.lua) lua.add(part)
  }
  if (handlers.length > 0) stages.handlers = handlers
  return { ...stages, endpoints, lua: [...lua], sources }
}
