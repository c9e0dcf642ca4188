import * as v from 'valibot'
import {
  duration,
  either,
  type Input,
  MAX_UNITS,
  type Named,
  named,
  object,
  whole,
} from './shapes.ts'

const DAY_MS = 86_400_000

const fields = {
  /** The number of refusals by the policy that leads to a ban. */
  after: whole(1),
  /** The time in which they are counted. */
  within: duration,
  /** The length of the first ban; each further one is twice as long. */
  ban: duration,
  /** The longest ban. Defaults to a day, or `ban` if that is longer. */
  max: v.optional(duration),
}

/** After `after` refusals by the policy within `within`: a ban of `ban`, twice as long each further time, up to `max`. */
export interface PenaltyOptions extends Input<typeof fields>, Named {}

const byRefusals = v.pipe(
  object(fields, ({ ban, max }, problem) => {
    if (ban && max && max < ban) problem(['max'], 'at least as long as ban')
  }),
  v.transform(({ after, within, ban, max }) => ({
    after,
    withinMs: within,
    banMs: ban,
    maxMs: max ?? Math.max(ban, DAY_MS),
  })),
)

/** Bans by operators only: no number of refusals leads to one. */
const manual = v.pipe(
  v.literal('manual', '"manual", or an object of after, within, ban and max'),
  v.transform(() => ({ after: MAX_UNITS, withinMs: 1, banMs: 1, maxMs: MAX_UNITS })),
)

export const penalty = either(
  (input) => typeof input === 'string',
  named<PenaltyOptions>()(byRefusals),
  manual,
)
