import * as v from 'valibot'
import type { Decision } from '../../base/decision.ts'
import type { RefusalOptions } from './refusal-fields.ts'
import { isObject } from './shapes.ts'

/** Makes the response to a refused request. The context is the argument of key functions. */
export type RefusalFunction<Context = unknown> = (
  decision: Decision,
  context: Context,
) => Response | Promise<Response>

/** A refusal. `sluice/refusals` checks and writes it, if it is not a function. */
export type Refusal = RefusalOptions | RefusalFunction

export const refusal = v.custom<Refusal>(
  (input) => typeof input === 'function' || isObject(input),
  'an object with status, body and headers, or a function',
)
