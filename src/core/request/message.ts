/** A message of a request's body, as policies see it. Types only: `bodies()` makes messages. */
import type { Soon } from '../base/when-known.ts'
import type { Condition } from '../config/schema/condition.ts'
import type { Cost } from '../config/schema/cost.ts'
import type { BodyPart } from '../config/schema/key.ts'

/** A rule with its condition compiled for both readings of what is unknown. */
export interface CompiledRule<View> {
  /** Returns `undefined` if a request matches, or may match. */
  mismatch: (view: View) => unknown
  /** True if a request matches however it is read. */
  isCertain: (view: View) => boolean
}

/** One message of a request: its body, or one item of a body that is a list. */
export interface Message {
  /** The value of a key part, or `unreadable` if the body or the value is. */
  read: <Unreadable>(
    part: Pick<BodyPart, 'name' | 'digest'>,
    unreadable: Unreadable,
  ) => Soon<string | undefined | Unreadable>
  /** Compares a condition. `undefined` if the body or a value cannot be read. */
  meets: (condition: NonNullable<Condition['body']>) => boolean | undefined
  /** The cost in units by these rules, for the view that has this message. */
  cost: <View>(rules: (CompiledRule<View> & { cost: number })[], cost: Cost, view: View) => number
}
