import type { Log } from './base/log.ts'
import type { RuntimeContext } from './base/runtime.ts'
import type { Config } from './config/parse.ts'
import type { DeployedParts } from './decide/question.ts'
import type { Rules } from './program/match.ts'
import type { VerifyStages } from './program/verified.ts'
import type { RefusalStages } from './respond/refusal.ts'

/** The permission of a token: `api` for decisions, `operate` for operations on keys and policies. */
export type Scope = 'api' | 'operate'

/** The runtime of a call. `contextOf` makes the context that key functions get for a described request. */
export interface ApiRuntime extends Omit<RuntimeContext, 'context'> {
  contextOf: (request: Request) => Promise<unknown>
}

/** An authorized call to the decision API, with everything that its endpoint needs. */
export interface Call {
  request: Request
  /** A digest of the token, to distinguish callers. */
  caller: string
  /** The part of the path that the endpoint reads, such as the name of a policy. */
  rest: string
  /** The configuration of the deployment. */
  config: Config
  /** The current rules, which may be live policies. */
  rules: Rules
  parts: DeployedParts
  runtime: ApiRuntime
  log: Log
  /** Write refusals by an object, and recognize requests of `sluice verify`. */
  stages: RefusalStages & VerifyStages
}

export interface Endpoint {
  /** Matches the path after `/_sluice/v1`. The group becomes `rest` of the call. */
  path: RegExp
  /** Defaults to all methods. */
  methods?: string[]
  /** The scopes of tokens that may call the endpoint. */
  scopes: Scope[]
  answer: (call: Call) => Promise<Response>
  /** True if proxies call for their clients. Then the token is in `Sluice-Token` only, because `Authorization` is the client's. */
  forClients?: true
}
