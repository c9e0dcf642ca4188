import * as v from 'valibot'
import { duration, type Input, type Named, named, object, pattern } from './shapes.ts'

const fields = () => ({
  /** Store of the document: `'redis'` for the database, or `'kv:<binding>'` for a KV namespace. Required. */
  from: pattern<'redis' | `kv:${string}`>('"redis" or "kv:<binding>"', /^(redis|kv:[A-Za-z_]\w*)$/),
  /** Key of the document: 1 to 512 characters. Defaults to `'sluice:live'`, or with a namespace to `'sluice:<namespace>:live'`. */
  key: v.optional(pattern('a key of 1 to 512 characters', /^.{1,512}$/s)),
  /** Shortest time between two reads by an isolate. Defaults to `'30s'`. */
  every: v.optional(duration, 30_000),
})

/** The source of live policies, and the interval of reads. */
export interface LiveOptions extends Input<ReturnType<typeof fields>>, Named {}

/** Parsed `LiveOptions`. */
export interface Live extends v.InferOutput<typeof live> {
  key: string
}

export const live = named<LiveOptions>()(
  v.pipe(
    object(fields),
    v.transform(({ every, ...rest }) => ({ ...rest, everyMs: every })),
  ),
)

/** The fields of a live document. `parseLive` checks their values together with the configuration, which supplies missing fields. */
export const liveDocument = object(() => ({
  policies: v.optional(v.unknown()),
  allow: v.optional(v.unknown()),
  deny: v.optional(v.unknown()),
  tables: v.optional(v.unknown()),
}))
