import * as v from 'valibot'
import { duration, object, whole } from './shapes.ts'

const MAX_TTL_MS = 60_000

/** How many units an isolate may hold at once, and for how long; parsed. */
export interface Lease {
  max: number
  ttlMs: number
}

export const lease = v.pipe(
  object({
    max: whole(2, 10_000),
    ttl: v.pipe(duration, v.maxValue(MAX_TTL_MS, 'a duration of at most 60s')),
  }),
  v.transform(({ max, ttl }): Lease => ({ max, ttlMs: ttl })),
)
