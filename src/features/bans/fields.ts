import * as v from 'valibot'
import { tagOf } from '../../core/base/fnv.ts'
import { MAX_UNITS } from '../../core/base/units.ts'
import {
  duration,
  either,
  flag,
  type Input,
  type Named,
  named,
  object,
  whole,
} from '../../core/config/schema/shapes.ts'
import type { Penalty } from '../../core/connection/store.ts'

const DAY_MS = 86_400_000

const penaltyFields = () => ({
  /** Number of refusals by the policy that starts a ban: a whole number, at least 1. Required. */
  after: whole(1),
  /** The time window in which refusals are counted. Required. */
  within: duration,
  /** Duration of the first ban. Each further ban is twice as long, up to `max`. Required. */
  ban: duration,
  /** Duration of the longest ban, at least `ban`. Defaults to a day, or to `ban` if that is longer. */
  max: v.optional(duration),
  /** True to list the keys that are banned, for operators: docs/reference/decision-api.md, "Who is banned". Defaults to false. */
  list: v.optional(flag),
})

/** A ban of a key after too many refusals: `after` refusals in the time `within` start a ban of the duration `ban`. */
export interface PenaltyOptions extends Input<ReturnType<typeof penaltyFields>>, Named {}

/** Only operators set bans. The thresholds are out of reach. */
export const NEVER = { after: MAX_UNITS, withinMs: 1, banMs: 1, maxMs: MAX_UNITS }

/** The terms have the order of fingerprints of idempotent calls: isolates of several versions compare them. */
function penalty(tag: string) {
  const byRefusals = v.pipe(
    object(penaltyFields, ({ ban, max }, problem) => {
      if (ban && max && max < ban) problem(['max'], 'at least as long as ban')
    }),
    v.transform(
      ({ after, within, ban, max, list }): Penalty => ({
        after,
        withinMs: within,
        banMs: ban,
        maxMs: max ?? Math.max(ban, DAY_MS),
        tag,
        ...(list && { list }),
      }),
    ),
  )
  const manual = v.pipe(
    v.literal('manual', '"manual", or an object with after, within, ban and max'),
    v.transform(() => ({ ...NEVER, tag })),
  )
  return either((input) => typeof input === 'string', named<PenaltyOptions>()(byRefusals), manual)
}

export const fields = ({ name = '' }: { name?: string }) => ({
  /**
   * Bans a key after too many refusals: `{ after, within, ban, max }`. With `'manual'` only operators set bans (docs/reference/decision-api.md).
   * Defaults to no bans.
   */
  penalty: v.optional(penalty(tagOf(name, 'penalty'))),
})
