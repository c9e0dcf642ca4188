import type { Log } from '../core/base/log.ts'
import type { Config } from '../core/config/parse.ts'
import { checked, type Schema } from '../core/config/schema/checked.ts'
import type { DeployedParts, Rules } from '../core/decide/create.ts'
import { readJson } from './body.ts'
import type { Caller, Scope } from './caller.ts'
import type { ApiRuntime } from './described-request.ts'
import { unprocessable } from './problems.ts'
import { MAX_PROBLEMS } from './schema.ts'

/** An authorized call to the decision API, with everything that its endpoint needs. */
export interface Call {
  request: Request
  caller: Caller
  /** The part of the path that the endpoint reads, such as the name of a policy. */
  rest: string
  /** The configuration of the deployment. */
  config: Config
  /** The current rules, which may be live policies. */
  rules: Rules
  parts: DeployedParts
  runtime: ApiRuntime
  log: Log
  /** The part of the deadline that the check of the caller's own limit used, in ms. */
  spentMs: number
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

/** Reads the body of a call by a schema. Returns a problem if the body is invalid. */
export async function bodyOf<T>(request: Request, schema: Schema<T>): Promise<T | Response> {
  const read = await readJson(request)
  if (read instanceof Response) return read
  const { output, problems } = checked(schema, read.json, 'body', MAX_PROBLEMS)
  return problems ? unprocessable(problems) : output
}
