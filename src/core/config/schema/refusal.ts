import * as v from 'valibot'
import type { Decision } from '../../base/decision.ts'
import { isObject } from '../../base/json.ts'
import type { ErrorFormat, RefusalOptions } from './refusal-fields.ts'

/** Makes the response to a refused request. The context is the argument of key functions. */
export type RefusalFunction<Context = unknown> = (
  decision: Decision,
  context: Context,
) => Response | Promise<Response>

/** A refusal as it is written. A text is short for an object with this `body`. */
export type RefusalInput<Context = unknown> =
  | RefusalOptions
  | RefusalFunction<Context>
  | ErrorFormat

/** A refusal. `refusals` checks and writes it, if it is not a function. */
export type Refusal = RefusalOptions | RefusalFunction

export const refusal = v.pipe(
  v.custom<RefusalInput>(
    (input) =>
      typeof input === 'function' || isObject(input) || input === 'json-rpc' || input === 'graphql',
    'an object with status, body and headers, "json-rpc", "graphql", or a function',
  ),
  v.transform((input): Refusal => (typeof input === 'string' ? { body: input } : input)),
)
