import * as v from 'valibot'
import { condition } from './condition.ts'
import { type Input, type Named, named, object } from './shapes.ts'

const fields = () => ({
  /** The requests that the rule applies to. Defaults to every request. */
  match: v.optional(condition, {}),
  /** The part of the quota that such a request must leave free: a number from 0, below 1. Required. */
  share: v.custom<number>(
    (input) => typeof input === 'number' && input >= 0 && input < 1,
    'a number from 0, below 1',
  ),
})

/** A part of the quota that some requests must leave free for others. */
export interface ReserveRule extends Input<ReturnType<typeof fields>>, Named {}

export const reserve = v.array(
  named<ReserveRule>()(
    v.pipe(
      object(fields),
      v.transform(({ match, share }) => ({ condition: match, share })),
    ),
  ),
  'a list of rules',
)
