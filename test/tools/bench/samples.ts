import type { Sample } from '../../../tools/bench/stack/measure.ts'
import type { Results } from '../../../tools/bench/stack/results.ts'

/** A sample with typical values, except for `changes`. */
export const sample = (changes: Partial<Sample> = {}): Sample => ({
  count: 1000,
  statuses: { 200: 1000 },
  perSecond: 100,
  p50: 10,
  latencies: Float64Array.of(10, 12),
  calls: 1,
  billed: 4,
  workerUs: 100,
  redisUs: 5,
  busy: 0.1,
  lateMs: 0,
  ...changes,
})

export const results = (changes: Partial<Results> = {}): Results => ({ workloads: {}, ...changes })
