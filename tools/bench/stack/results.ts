import { quantile, type Spread, spread } from '../statistics.ts'
import type { Clients } from './legs/clients.ts'
import type { ColdStarts } from './legs/cold-start.ts'
import type { Exactness } from './legs/exactness.ts'
import type { Isolates } from './legs/isolates.ts'
import type { ShieldFlood } from './legs/shield.ts'
import type { Size, Wholes } from './legs/size.ts'
import type { Soak } from './legs/soak.ts'
import type { Sample } from './measure.ts'
import type { RedisCost } from './redis-cost.ts'
import type { Samples } from './run.ts'
import type { VariantId } from './variants.ts'

/** The results of a run. Parts that were not measured are absent. */
export interface Results {
  /** Samples by the id of the workload. */
  workloads: Record<string, Samples>
  redis?: RedisCost[]
  sizes?: Size[]
  wholes?: Wholes
  coldStarts?: ColdStarts
  exactness?: Exactness[]
  clients?: Clients[]
  isolates?: Isolates[]
  soak?: Soak
  shield?: ShieldFlood
}

type Read = (sample: Sample) => number | undefined

/** A value of a variant in each round. */
export function each(samples: Samples, id: VariantId, read: Read): number[] | undefined {
  return over(samples[id], samples[id], (sample) => read(sample))
}

/** The ratio to another variant in the same round. */
export function ratios(samples: Samples, id: VariantId, to: VariantId, read: Read) {
  return over(samples[id], samples[to], (one, other) => {
    const [a, b] = [read(one), read(other)]
    return a === undefined || !b ? undefined : a / b
  })
}

/** The difference from another variant in the same round. */
export function differences(samples: Samples, id: VariantId, to: VariantId, read: Read) {
  return over(samples[id], samples[to], (one, other) => {
    const [a, b] = [read(one), read(other)]
    return a === undefined || b === undefined ? undefined : a - b
  })
}

const spreadOf =
  <Args extends unknown[]>(values: (...args: Args) => number[] | undefined) =>
  (...args: Args): Spread | undefined => {
    const found = values(...args)
    return found && spread(found)
  }

export const [figure, ratio, added] = [spreadOf(each), spreadOf(ratios), spreadOf(differences)]

function over(
  ones: Sample[] | undefined,
  others: Sample[] | undefined,
  compare: (one: Sample, other: Sample) => number | undefined,
): number[] | undefined {
  if (!ones?.length || !others) return undefined
  const values = ones.map((one, round) => compare(one, others[round]!))
  return values.every((value) => value !== undefined) ? values : undefined
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
