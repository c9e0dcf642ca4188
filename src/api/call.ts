import type { Config } from '../config/parse.ts'
import { checked, type Schema } from '../config/schema/checked.ts'
import type { DeployedParts, Rules } from '../limiter/create.ts'
import { readJson } from './body.ts'
import type { Caller } from './caller.ts'
import type { ApiRuntime } from './described-request.ts'
import { unprocessable } from './problems.ts'
import { MAX_PROBLEMS } from './schema.ts'

/** A call of the decision API by somebody who may make it, and what it takes to answer. */
export interface Call {
  request: Request
  caller: Caller
  /** What of the path is the endpoint's own, such as the name of a policy. */
  rest: string
  /** The deployment's. */
  config: Config
  /** Those that hold now. */
  rules: Rules
  parts: DeployedParts
  around: ApiRuntime
  /** The part of the deadline that the limit on the caller has taken, ms. */
  spentMs: number
}

/** The body of a call, if it is what a schema says; else a problem. */
export async function bodyOf<T>(request: Request, schema: Schema<T>): Promise<T | Response> {
  const read = await readJson(request)
  if (read instanceof Response) return read
  const { output, problems } = checked(schema, read.json, 'body', MAX_PROBLEMS)
  return problems ? unprocessable(problems) : output
}
