import * as v from 'valibot'
import { duration, object, pattern } from './shapes.ts'

/** Where policies are read from while the Worker runs, parsed. */
export interface Live {
  from: string
  key: string
  everyMs: number
}

export const live = v.pipe(
  object({
    from: pattern('"redis" or "kv:<binding>"', /^(redis|kv:[A-Za-z_]\w*)$/),
    key: v.optional(pattern('a name of 1 to 512 characters', /^.{1,512}$/s)),
    every: v.optional(duration, 30_000),
  }),
  v.transform(({ every, ...rest }) => ({ ...rest, everyMs: every })),
)

/** What a live document may hold: checked as a whole with the configuration it goes into, where what is missing here comes from. */
export const document = object({
  policies: v.optional(v.unknown()),
  allow: v.optional(v.unknown()),
  deny: v.optional(v.unknown()),
  tables: v.optional(v.unknown()),
})
