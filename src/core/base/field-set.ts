import type { Decision } from './decision.ts'

/** The fields of a set for one decision. */
export interface FieldValues {
  fields: [name: string, value: string][]
  /** The remaining units that the fields report. */
  remaining: number
}

/** A set of rate limit fields. */
export interface FieldSet {
  names: readonly string[]
  /** Returns the fields for a decision, or `undefined` if the decision has no limit to report. */
  valuesFor(decision: Decision): FieldValues | undefined
  /** The smallest number that a client may read as remaining in the fields of a response; infinity if there is none. */
  remainingIn(headers: Headers): number
  /** Fields outside of the set that describe the same quota, and would contradict these. */
  companions: readonly string[]
}
