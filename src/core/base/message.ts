/**
 * The interface between the matcher and `sluice/bodies`. It has types only: a Worker that does not import `sluice/bodies` has none of
 * its code.
 */
import type { ResponseMeter } from './metering.ts'
import type { Soon } from './when-known.ts'

/** The values to match, by the path of a field, such as `params.name`. Without `values`, any value matches. */
export type BodyCondition = { name: string; values: string[] | undefined }[]

/** The fields of a cost that the body sets. The other fields are those of `Cost`. */
export interface BodyCost {
  body: string | undefined
  graphql: true | undefined
  max: number | undefined
  otherwise: number
}

/** A rule of a cost, compiled. */
export interface BodyCostRule<View> {
  cost: number
  /** Returns `undefined` if a request matches, or may match. */
  mismatch: (view: View) => unknown
  /** True if a request matches however it is read. */
  isCertain: (view: View) => boolean
}

/** One message of a request: its body, or one item of a body that is a list. */
export interface Message {
  /**
   * The value of a key part.
   * @param unreadable the result if the body or the value cannot be read
   */
  read: <Unreadable>(path: string, unreadable: Unreadable) => string | undefined | Unreadable
  /** Compares a condition. `undefined` if the body or a value cannot be read. */
  meets: (condition: BodyCondition) => boolean | undefined
  /**
   * The cost in units.
   * @param rules the rules of the cost
   * @param view the view that has this message
   */
  cost: <View>(rules: BodyCostRule<View>[], cost: BodyCost, view: View) => number
}

/** The parts of a configuration that `bodies` checks, as far as they are valid, and the function that reports a problem. */
export interface CheckedBodies {
  policies: readonly unknown[]
  allow?: readonly unknown[] | undefined
  deny?: readonly unknown[] | undefined
  shield?: unknown
  problem: (path: (string | number)[], expected: string) => void
}

/** The result of `bodies()`. */
export interface Bodies extends ResponseMeter {
  /** Checks the settings that use the body. */
  check: (config: CheckedBodies) => void
  /**
   * Describes each message of a request, and combines the results.
   * @param views views of the request, one for each reading of its path
   * @param describe returns how a policy applies to one message, which is in the views
   * @param freeKeys the keys in Redis that one call takes besides one quota of each policy
   */
  each<View extends object, Result>(
    views: View[],
    describe: (views: View[]) => Soon<Result>,
    freeKeys: number,
  ): Soon<Result>
  /** Returns the reason why the body of a request is not readable. `undefined` for a readable body, or without one. */
  problemOf(request: Request): Promise<string | undefined>
}
