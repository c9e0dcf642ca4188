import * as v from 'valibot'
import {
  duration,
  type Input,
  type Named,
  named,
  object,
  whole,
} from '../../core/config/schema/shapes.ts'

const leaseFields = () => ({
  /** Most units that an isolate may hold at once: 2 to 10,000. Required. */
  max: whole(2, 10_000),
  /** Longest time that an isolate may hold units: a duration of at most `'60s'`. Required. */
  ttl: v.pipe(duration, v.maxValue(60_000, 'a duration of at most 60s')),
})

/** How many units an isolate may take in advance, and for how long. */
export interface LeaseOptions extends Input<ReturnType<typeof leaseFields>>, Named {}

const lease = named<LeaseOptions>()(
  v.pipe(
    object(leaseFields),
    v.transform(({ max, ttl }) => ({ max, ttlMs: ttl })),
  ),
)

export const fields = () => ({
  /**
   * Lets an isolate take up to `max` units (2 to 10,000) of a busy quota in one call and spend them without further calls for at most
   * `ttl` (at most `'60s'`): docs/reference/quotas.md, "Leases of hot keys". Cannot be combined with `'sliding-log'`, `'concurrency'`,
   * `countOnly`, `cost.response`, `cost.usage` or `penalty`. Defaults to one call for each request.
   */
  lease: v.optional(lease),
})
