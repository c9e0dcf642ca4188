import type { Soon } from '../../../src/core/base/when-known.ts'
import type { Matched } from '../../../src/core/program/match.ts'
import type { Timed } from './seconds.ts'
import type { Decided } from './verdict.ts'

/** The two ways to spread the requests of a second. */
export type Run = 'spread' | 'burst'

/** A line to decide, with what its engine made of its matches. */
export interface Asked<Rules> extends Timed {
  rules: Rules
}

/** Decides lines in the order of their times, in both runs. */
export interface Engine<Rules> {
  /** Lines with the same matches may share the result. */
  rulesOf(matched: Matched): Soon<Rules>
  decide(asked: Asked<Rules>[]): Soon<Decided[]>
}

/** A logged response, as the refunds read it. A log has no response headers. */
const noHeaders = new Headers()
export const responseOf = (status: number) => ({ status, headers: noHeaders })
