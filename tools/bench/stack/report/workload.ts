import type { Sample } from '../measure.ts'
import { added, failures, figure, pooled, ratio } from '../results.ts'
import type { Samples } from '../run.ts'
import { type VariantId, variants } from '../variants.ts'
import { RTT_MS, type Workload } from '../workloads.ts'
import { digits, signed, table, withSign, withSpread } from './table.ts'

/** The price of a million decisions in dollars, at Upstash's $0.20 per 100,000 commands. */
export const dollarsAMillion = (billed: number) => billed * 2

/** Explains the columns of the tables of workloads. */
export const WORKLOAD_LEGEND = `### Workloads

All values except \`decisions/s\` are per decision. Latency (p50, p99, p99.9): the row *one bare GET* has its own latency, the other rows have the difference from it, for p99 and p99.9 over all rounds together. *billed commands* include those inside scripts; *$ per million* is their price for a million decisions. *× bare GET* is the Worker CPU relative to the bare GET.`

const HEAD = [
  'limiter',
  'decisions/s',
  'p50, ms',
  'p99, ms',
  'p99.9, ms',
  'HTTP calls',
  'billed commands',
  '$ per million',
  'Worker CPU, µs',
  '× bare GET',
  'Redis CPU, µs',
]

export function workloadTable(workload: Workload, samples: Samples): string {
  const ids = Object.keys(samples) as VariantId[]
  const lines = ids.map((id) => {
    const read = (pick: (sample: Sample) => number | undefined) => figure(samples, id, pick)
    const billed = read((sample) => sample.billed)!.median
    const floor = id === 'nothing'
    return [
      variants[id].name,
      read((sample) => sample.perSecond)!.median.toFixed(0),
      ...latency(samples, id),
      digits(read((sample) => sample.calls)!.median),
      digits(billed),
      floor ? '–' : digits(dollarsAMillion(billed)),
      read((sample) => sample.workerUs)?.median.toFixed(0) ?? '–',
      withSpread(ratio(samples, id, 'bare', (sample) => sample.workerUs)),
      floor ? '–' : (read((sample) => sample.redisUs)?.median.toFixed(1) ?? '–'),
    ]
  })
  return [
    `### ${workload.title}, Redis ${RTT_MS} ms away`,
    table(HEAD, lines),
    ...remarks(samples, ids),
  ].join('\n\n')
}

/** The latency of the bare GET; for the other variants the difference from it. */
function latency(samples: Samples, id: VariantId): string[] {
  const own = samples[id]!
  const bare = samples.bare!
  if (id === 'bare' || id === 'nothing') {
    return [0.5, 0.99, 0.999].map((share) => digits(pooled(own, share)))
  }
  return [
    withSign(added(samples, id, 'bare', (sample) => sample.p50)),
    ...[0.99, 0.999].map((share) => signed(pooled(own, share) - pooled(bare, share))),
  ]
}

/** Warnings about a table, such as an overloaded load generator. */
function remarks(samples: Samples, ids: VariantId[]): string[] {
  return ids.flatMap((id) => {
    const own = samples[id]!
    const { name } = variants[id]
    const failed = failures(own)
    const busy = Math.max(...own.map((sample) => sample.busy))
    const late = Math.max(...own.map((sample) => sample.lateMs))
    return [
      ...(failed > 0 ? [`${name}: ${failed} requests were neither admitted nor refused.`] : []),
      ...(busy > 0.8
        ? [`${name}: the load generator used ${(busy * 100).toFixed(0)} % of a CPU.`]
        : []),
      ...(late > 1
        ? [
            `${name}: in one round, 1 % of the requests were sent more than ${late.toFixed(1)} ms late.`,
          ]
        : []),
    ]
  })
}
