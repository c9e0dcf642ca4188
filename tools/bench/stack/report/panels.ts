import type { Spread } from '../../statistics.ts'
import { figure, type Results, ratio } from '../results.ts'
import type { Samples } from '../run.ts'
import { type VariantId, variants } from '../variants.ts'
import type { Bar, Panel } from './svg.ts'
import { dollarsAMillion } from './workload.ts'

/** The panels of the picture: a selection of the tables. */
export function panelsOf({ workloads }: Results): Panel[] {
  const panel = (
    [title, subtitle]: [string, string],
    workload: string,
    read: (samples: Samples, id: VariantId) => Spread | undefined,
  ): Panel => {
    const samples = workloads[workload] ?? {}
    const bars = (Object.keys(samples) as VariantId[]).flatMap((id): Bar[] => {
      const found = read(samples, id)
      if (!found) return []
      const { name, by } = variants[id]
      const label = name
        .replace('@upstash/ratelimit', 'upstash')
        .replace('a Worker that', '')
        .replace('batching and denial cache off', 'no batching, no cache')
        .replace('the same response, no decision, one GET for all of', 'no decision, a GET every')
        .replace(', simulated', ' (sim.)')
      return [{ label: label.trim(), by, value: found.median, low: found.low, high: found.high }]
    })
    return { title, subtitle, bars }
  }
  return [
    panel(
      [
        'Dollars to Upstash per million decisions',
        '64 at once, many keys; $0.20 per 100,000 commands',
      ],
      'closed-64',
      (samples, id) =>
        variants[id].by === 'floor'
          ? undefined
          : figure(samples, id, ({ billed }) => dollarsAMillion(billed)),
    ),
    panel(
      ['Worker CPU, relative to a bare GET', '64 at once, many keys, Redis 10 ms away'],
      'closed-64',
      (samples, id) => ratio(samples, id, 'bare', ({ workerUs }) => workerUs),
    ),
    panel(
      ['HTTP calls per decision', '1500 requests a second at random times'],
      'open-1500',
      (samples, id) => figure(samples, id, ({ calls }) => calls),
    ),
    panel(
      ['A flood: Worker CPU, relative to doing nothing', '64 at once, 50 exhausted keys'],
      'flood',
      (samples, id) => ratio(samples, id, 'nothing', ({ workerUs }) => workerUs),
    ),
  ].filter(({ bars }) => bars.length > 0)
}
