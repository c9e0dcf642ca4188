import * as v from 'valibot'
import { duration, type Input, type Named, named, object, whole } from './shapes.ts'

const MAX_TTL_MS = 60_000

const fields = () => ({
  /** Most units that an isolate may hold at once: 2 to 10,000. Required. */
  max: whole(2, 10_000),
  /** Longest time that an isolate may hold units: a duration of at most `'60s'`. Required. */
  ttl: v.pipe(duration, v.maxValue(MAX_TTL_MS, 'a duration of at most 60s')),
})

/** How many units an isolate may take in advance, and for how long. */
export interface LeaseOptions extends Input<ReturnType<typeof fields>>, Named {}

export const lease = named<LeaseOptions>()(
  v.pipe(
    object(fields),
    v.transform(({ max, ttl }) => ({ max, ttlMs: ttl })),
  ),
)
