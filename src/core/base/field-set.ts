import type { Decision } from './decision.ts'

export interface FieldSet {
  names: readonly string[]
  /** Returns the fields for a decision, and the remaining units that they report; `undefined` if the decision has no limit to report. */
  valuesFor(
    decision: Decision,
  ): { fields: [name: string, value: string][]; remaining: number } | undefined
  /** The smallest number that a client may read as remaining in the fields of a response; infinity if there is none. Defaults to that of the drafts. */
  remainingIn?: ((headers: Headers) => number) | undefined
  /** Fields outside of the set that describe the same quota, and would contradict these. */
  companions: readonly string[]
}
