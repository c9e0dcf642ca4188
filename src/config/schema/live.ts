import * as v from 'valibot'
import { duration, type Input, type Named, named, object, pattern } from './shapes.ts'

const fields = {
  /** The database, or a KV namespace by the name of its binding. */
  from: pattern<'redis' | `kv:${string}`>('"redis" or "kv:<binding>"', /^(redis|kv:[A-Za-z_]\w*)$/),
  /** Defaults to `'sluice:live'`, with a namespace to `'sluice:<namespace>:live'`. */
  key: v.optional(pattern('a name of 1 to 512 characters', /^.{1,512}$/s)),
  /** The shortest time between two reads of an isolate. Defaults to `'30s'`. */
  every: v.optional(duration, 30_000),
}

/** Where policies are read from while the Worker runs. */
export interface LiveOptions extends Input<typeof fields>, Named {}

/** The same, parsed. */
export interface Live extends v.InferOutput<typeof live> {
  key: string
}

export const live = named<LiveOptions>()(
  v.pipe(
    object(fields),
    v.transform(({ every, ...rest }) => ({ ...rest, everyMs: every })),
  ),
)

/** The fields of a live document. They are checked together with the configuration, which supplies those that are missing. */
export const liveDocument = object({
  policies: v.optional(v.unknown()),
  allow: v.optional(v.unknown()),
  deny: v.optional(v.unknown()),
  tables: v.optional(v.unknown()),
})
