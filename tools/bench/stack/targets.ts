/** The targets beside the verdict: bills, calls and exactness. */
import type { Sample } from './measure.ts'
import { figure, pooled, type Results, ratio } from './results.ts'
import type { VariantId } from './variants.ts'

export interface Target {
  what: string
  /** The maximum. */
  most: number
  unit: string
  /** The measured value; `undefined` if it was not measured. */
  read(results: Results): number | undefined
}

const median =
  (name: 'billed' | 'calls', id: VariantId, workload: string) =>
  ({ workloads }: Results) =>
    figure(workloads[workload] ?? {}, id, (sample) => sample[name])?.median

/** A value with `observe`, relative to one without in the same round. */
const withObserve =
  (workload: string, read: (sample: Sample) => number | undefined) =>
  ({ workloads }: Results) =>
    ratio(workloads[workload] ?? {}, 'ours-observe', 'ours', read)?.median

/** The sum over the variants of Sluice. */
const ofOurs = <One extends { id: VariantId }>(
  list: One[] | undefined,
  read: (one: One) => number,
) => list?.filter(({ id }) => id.startsWith('ours')).reduce((sum, one) => sum + read(one), 0)

const target = (what: string, most: number, unit: string, read: Target['read']): Target => ({
  what,
  most,
  unit,
  read,
})

export const targets: Target[] = [
  target('p99 over a bare GET, one request at a time', 2, 'ms', ({ workloads: { lone } }) =>
    lone?.ours && lone.bare ? pooled(lone.ours, 0.99) - pooled(lone.bare, 0.99) : undefined,
  ),
  target(
    'p50 of five policies, relative to one',
    1.1,
    '×',
    ({ workloads: { five = {} } }) =>
      ratio(five, 'ours', 'ours-one', (sample) => sample.p50)?.median,
  ),
  target('commands billed, admitted', 4, '', median('billed', 'ours', 'lone')),
  target('commands billed, clock edge', 3, '', median('billed', 'ours-edge', 'lone')),
  target('commands billed, five policies', 4, '', median('billed', 'ours', 'five')),
  target('commands billed, 64 at once', 1.5, '', median('billed', 'ours', 'closed-64')),
  target('commands billed, refused by Redis', 3, '', median('billed', 'ours-plain', 'flood')),
  target('commands billed, denial cache', 0.01, '', median('billed', 'ours', 'flood')),
  target('calls per decision, 64 at once', 0.1, '', median('calls', 'ours', 'closed-64')),
  target('calls per decision, denial cache', 0.004, '', median('calls', 'ours', 'flood')),
  target('calls per decision, leases of 10', 0.11, '', median('calls', 'ours-lease-10', 'hot')),
  target('calls per decision, leases of 50', 0.03, '', median('calls', 'ours-lease-50', 'hot')),
  ...(['lone', 'closed-64'] as const).map((workload) =>
    target(
      `Worker CPU with observe, ${workload === 'lone' ? 'one request at a time' : '64 at once'}, relative to without`,
      1.03,
      '×',
      withObserve(workload, ({ workerUs }) => workerUs),
    ),
  ),
  target(
    'calls with observe, one request at a time, relative to without',
    1,
    '×',
    withObserve('lone', ({ calls }) => calls),
  ),
  target(
    'commands billed with observe, one request at a time, relative to without',
    1,
    '×',
    withObserve('lone', ({ billed }) => billed),
  ),
  target(
    'share of a flood on exhausted keys that passes a shield',
    0.05,
    '',
    (results) => results.shield?.reached,
  ),
  target('clients refused after the reported wait', 0, '', ({ clients }) =>
    ofOurs(clients, ({ falsely }) => falsely),
  ),
  target('over- and under-admitted, 256 at once on two isolates', 0, '', ({ exactness }) =>
    ofOurs(exactness, (one) => one.over + one.under + one.failed),
  ),
  target('over-admitted, eight isolates with leases', 0, '', ({ isolates }) =>
    ofOurs(isolates, ({ over }) => over),
  ),
  target(
    'not admitted within the quota, the same',
    1,
    '%',
    ({ isolates }) => isolates && Math.max(...isolates.map(({ share }) => (1 - share) * 100)),
  ),
  target('soak test: requests without a valid response', 0, '', ({ soak }) => soak?.failed),
]

/** A target of a run; `undefined` if it was not measured. */
export function judge({ most, read }: Target, results: Results) {
  const value = read(results)
  return value === undefined ? undefined : { value, isMet: value <= most }
}
