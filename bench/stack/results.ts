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

/** All that a run found out. */
export interface Results {
  /** By the workload's id. */
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

/** A figure of a variant. */
export function figure(samples: Samples, id: VariantId, read: Read): Spread | undefined {
  return over(samples[id], samples[id], (sample) => read(sample))
}

/** How many times that of another variant in the same round. */
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

/** How much more than another variant in the same round. */
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

/** Of the requests of all rounds together, ms: a single round has too few for the rare ones. */
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
