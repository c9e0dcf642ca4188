import { quantile, type Spread, spread } from '../statistics.ts'
import type { Databases } from './legs/databases.ts'
import type { Exactness } from './legs/exactness.ts'
import type { Greedy } from './legs/greedy.ts'
import type { Isolates } from './legs/isolates.ts'
import type { Overload } from './legs/overload.ts'
import type { Profile } from './legs/profile.ts'
import type { ShieldFlood } from './legs/shield.ts'
import type { Soak } from './legs/soak.ts'
import type { Waits } from './legs/waits.ts'
import type { Sample } from './measure.ts'
import type { RedisCost } from './redis-cost.ts'
import type { Samples } from './run.ts'
import type { VariantId } from './variants.ts'

/** The results of a run. */
export interface Results {
  /** Samples by the id of the workload. */
  workloads: Record<string, Samples>
  redis: RedisCost[]
  exactness: Exactness[]
  waits: Waits[]
  greedy: Greedy[]
  isolates: Isolates[]
  soak: Soak | undefined
  profiles: Profile[]
  databases?: Databases | undefined
  parallel?: Samples | undefined
  shield?: ShieldFlood | undefined
  overload?: Overload[]
}

type Read = (sample: Sample) => number | undefined

/** The spread of a value over the rounds of a variant. */
export function figure(samples: Samples, id: VariantId, read: Read): Spread | undefined {
  return over(samples[id], samples[id], (sample) => read(sample))
}

/** The ratio to another variant in the same round. */
export function ratio(
  samples: Samples,
  id: VariantId,
  to: VariantId,
  read: Read,
): Spread | undefined {
  return over(samples[id], samples[to], (one, other) => {
    const [a, b] = [read(one), read(other)]
    return a === undefined || !b ? undefined : a / b
  })
}

/** The difference from another variant in the same round. */
export function added(
  samples: Samples,
  id: VariantId,
  to: VariantId,
  read: Read,
): Spread | undefined {
  return over(samples[id], samples[to], (one, other) => {
    const [a, b] = [read(one), read(other)]
    return a === undefined || b === undefined ? undefined : a - b
  })
}

function over(
  ones: Sample[] | undefined,
  others: Sample[] | undefined,
  compare: (one: Sample, other: Sample) => number | undefined,
): Spread | undefined {
  if (!ones || !others) return undefined
  const values = ones.map((one, round) => compare(one, others[round]!))
  return values.length === 0 || values.includes(undefined) ? undefined : spread(values as number[])
}

/** A latency quantile of all rounds together, in ms: a single round has too few requests for high quantiles. */
export function pooled(samples: Sample[], share: number): number {
  return quantile(
    samples.flatMap(({ latencies }) => Array.from(latencies)),
    share,
  )
}

/** Requests that were neither admitted nor refused. */
export function failures(samples: Sample[]): number {
  return samples
    .flatMap(({ statuses }) => Object.entries(statuses))
    .filter(([status]) => status !== '200' && status !== '429')
    .reduce((sum, [, count]) => sum + count, 0)
}
