import * as v from 'valibot'
import type { Decision, LimitState } from '../../base/decision.ts'
import type { RefusalOptions } from './refusal-fields.ts'
import { type AddProblem, isObject } from './shapes.ts'

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

/** A refused request. */
export interface Refused {
  decision: Decision
  /** The limit that refuses it for the longest time. */
  limit: LimitState | undefined
  /** The field `Accept`. */
  accept: string | null
  /** The problem document, with all fields of a refusal. */
  standard: Response
}

/** The result of `refusals()`. */
export interface Refusals {
  /** Reports the problems of the refusals of a configuration and of its policies. */
  check: (
    owners: {
      refusal?: Refusal | undefined
      policies: readonly ({ refusal?: Refusal | undefined } | undefined)[]
    },
    problem: AddProblem,
  ) => void
  /** Makes the response. The caller adds the fields that every refusal has. */
  write: (refusal: RefusalOptions, refused: Refused) => Promise<Response>
}
