import * as v from 'valibot'
import {
  duration,
  type Input,
  type Named,
  named,
  object,
  pattern,
} from '../../core/config/schema/shapes.ts'

const liveFields = () => ({
  /** Store of the document: `'redis'` for the database, or `'kv:<binding>'` for a KV namespace. Required. */
  from: pattern<'redis' | `kv:${string}`>('"redis" or "kv:<binding>"', /^(redis|kv:[A-Za-z_]\w*)$/),
  /** Key of the document: 1 to 512 characters. Defaults to `'sluice:live'`, or with a namespace to `'sluice:<namespace>:live'`. */
  key: v.optional(pattern('a key of 1 to 512 characters', /^.{1,512}$/s)),
  /** Shortest time between two reads by an isolate. Defaults to `'30s'`. */
  every: v.optional(duration, 30_000),
})

/** The source of live policies, and the interval of reads. */
export interface LiveOptions extends Input<ReturnType<typeof liveFields>>, Named {}

/** @param defaultKey the key without `key` */
const live = (defaultKey: string) =>
  named<LiveOptions>()(
    v.pipe(
      object(liveFields),
      v.transform(({ every, from, key = defaultKey }) => ({ from, key, everyMs: every })),
    ),
  )

export type Live = v.InferOutput<ReturnType<typeof live>>

export const settings = ({ namespace }: { namespace?: string | undefined }) => ({
  /**
   * Reads a JSON document `{ policies, allow, deny, tables }` from Redis or KV in the background. Each field of the document replaces
   * the same field of this configuration until the document is deleted. An invalid document is logged, and the last valid one stays in
   * effect. Defaults to none.
   */
  live: v.optional(live(namespace ? `sluice:${namespace}:live` : 'sluice:live')),
})
