/** The type of expectations. Their schema is in src/lint/expect, so that a Worker's bundle does not contain it. */
import * as v from 'valibot'
import type { Duration } from '../../base/duration.ts'
import type { MatchOptions } from './condition.ts'
import type { KeySource } from './key.ts'

/** A source of a key that is text or an address, and no function. */
export type PlainKey = Exclude<KeySource, (context: never) => unknown>

/** What the policies must hold, for every request and at every time: at most so many requests of one client pass. */
export interface ExpectOptions {
  /**
   * The requests that count: a condition with the fields of `match`. What it leaves out may have any value, since a client chooses it.
   * Defaults to every request.
   */
  request?: MatchOptions | undefined
  /** What counts as one client: a key part or a list of parts, as in `key` of a policy, without functions. Defaults to `'ip'`. */
  per?: PlainKey | PlainKey[] | undefined
  /** The most requests of one client that may pass in any interval of the length `in`: a whole number, at least 0. Required. */
  atMost: number
  /** Length of the interval: a duration such as `'1m'`. Required. */
  in: Duration
}

/** One expectation or a list, unchecked. */
export const expectations = v.optional(v.custom<ExpectOptions | ExpectOptions[]>(() => true))
