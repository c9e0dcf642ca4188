/** The performance targets, and how to read their values from the results. */
import { added, figure, type Results, ratio } from './results.ts'
import type { Samples } from './run.ts'
import type { VariantId } from './variants.ts'

export interface Target {
  of: string
  title: string
  /** The maximum. */
  most: number
  unit: string
  /** The measured value; `undefined` if it was not measured. */
  read(results: Results): number | undefined
}

const under = ({ workloads }: Results, workload: string): Samples => workloads[workload] ?? {}
const billed = (id: VariantId, workload: string) => (results: Results) =>
  figure(under(results, workload), id, (sample) => sample.billed)?.median
const calls = (id: VariantId, workload: string) => (results: Results) =>
  figure(under(results, workload), id, (sample) => sample.calls)?.median
const p50 = (id: VariantId, workload: string) => (results: Results) =>
  added(under(results, workload), id, 'bare', (sample) => sample.p50)?.median
const p99 = (id: VariantId, workload: string) => (results: Results) =>
  added(under(results, workload), id, 'bare', (sample) => sample.p99)?.median
const cpu = (id: VariantId, to: VariantId, workload: string) => (results: Results) =>
  ratio(under(results, workload), id, to, (sample) => sample.workerUs)?.median
const redis = (id: string) => (results: Results) =>
  results.redis.find((one) => one.id === id)?.cpu?.ratio
const bytes = (id: string) => (results: Results) => {
  const found = results.redis.find((one) => one.id === id)
  return found?.bytes && Math.max(found.bytes.ipv4, found.bytes.ipv6)
}
/** The value of a variant with a feature turned off, or of `ours` if the variant was not measured. */
const either =
  (read: (id: VariantId) => (results: Results) => number | undefined, id: VariantId) =>
  (results: Results) =>
    read(id)(results) ?? read('ours')(results)
const ofOurs = <One extends { id: VariantId }>(list: One[], read: (one: One) => number) => {
  const own = list.filter(({ id }) => id.startsWith('ours'))
  return own.length > 0 ? own.reduce((sum, one) => sum + read(one), 0) : undefined
}

const worst = <One>(list: One[], read: (one: One) => number) =>
  list.length > 0 ? Math.max(...list.map(read)) : undefined

const group = (of: string, list: Omit<Target, 'of'>[]): Target[] =>
  list.map((target) => ({ of, ...target }))

/** Time for the same number of decisions without batching, relative to one shard. */
const relativeTimeOf =
  (count: number) =>
  ({ databases }: Results) => {
    const of = (count: number) =>
      databases?.scale.find((one) => one.databases === count && !one.batching)?.perSecond
    const [one, many] = [of(1), of(count)]
    return one === undefined || many === undefined ? undefined : one / many
  }

export const targets: Target[] = [
  ...group('One request at a time, Redis 10 ms away', [
    { title: 'p50 over a bare GET', most: 0.3, unit: 'ms', read: p50('ours', 'lone') },
    { title: 'p99 over a bare GET', most: 2, unit: 'ms', read: p99('ours', 'lone') },
    { title: 'billed commands, admitted', most: 4, unit: '', read: billed('ours', 'lone') },
    { title: 'billed commands, clock edge', most: 3, unit: '', read: billed('ours-edge', 'lone') },
  ]),
  ...group('Five policies on one client', [
    { title: 'billed commands', most: 4, unit: '', read: billed('ours', 'five') },
    {
      title: 'p50, relative to one policy',
      most: 1.1,
      unit: '×',
      read: (results) =>
        ratio(under(results, 'five'), 'ours', 'ours-one', (sample) => sample.p50)?.median,
    },
  ]),
  ...group('1500 requests a second at random times, Redis 10 ms away', [
    { title: 'HTTP calls per decision', most: 0.7, unit: '', read: calls('ours', 'open-1500') },
    {
      title: 'p50 over a bare GET (no more than for one request at a time)',
      most: 0.3,
      unit: 'ms',
      read: p50('ours', 'open-1500'),
    },
  ]),
  ...group('64 at once, many keys, Redis 10 ms away', [
    { title: 'HTTP calls per decision', most: 0.1, unit: '', read: calls('ours', 'closed-64') },
    { title: 'billed commands', most: 1.5, unit: '', read: billed('ours', 'closed-64') },
    {
      title: 'Worker CPU, relative to a bare GET',
      most: 0.55,
      unit: '×',
      read: cpu('ours', 'bare', 'closed-64'),
    },
    {
      title: 'Worker CPU with batching off, relative to a bare GET',
      most: 1.1,
      unit: '×',
      read: either((id) => cpu(id, 'bare', 'closed-64'), 'ours-unbatched'),
    },
  ]),
  ...group('A flood on exhausted keys', [
    {
      title: 'billed commands, refused by Redis',
      most: 3,
      unit: '',
      read: either((id) => billed(id, 'flood'), 'ours-plain'),
    },
    {
      title: 'billed commands, refused by the denial cache',
      most: 0.01,
      unit: '',
      read: billed('ours', 'flood'),
    },
    { title: 'HTTP calls per decision', most: 0.004, unit: '', read: calls('ours', 'flood') },
    {
      title: 'Worker CPU, relative to a Worker that does nothing',
      most: 1.2,
      unit: '×',
      read: cpu('ours', 'nothing', 'flood'),
    },
    {
      title: 'refused after exactly the reported wait',
      most: 0,
      unit: '',
      read: ({ waits }) => ofOurs(waits, ({ falsely }) => falsely),
    },
  ]),
  ...group('An origin 20 ms away, Redis 10 ms away', [
    {
      title: "p50 over the origin alone, check: 'parallel'",
      most: 1,
      unit: 'ms',
      read: ({ parallel = {} }) =>
        added(parallel, 'ours-parallel', 'ours-origin', (sample) => sample.p50)?.median,
    },
  ]),
  ...group('A flood on 20,000 exhausted keys behind a shield', [
    {
      title: 'share of the requests that reach Redis',
      most: 0.05,
      unit: '',
      read: ({ shield }) => shield?.reached,
    },
  ]),
  ...group('64 at once, one hot key, Redis 10 ms away', [
    {
      title: 'HTTP calls per decision, leases of 10',
      most: 0.11,
      unit: '',
      read: calls('ours-lease-10', 'hot'),
    },
    {
      title: 'HTTP calls per decision, leases of 50',
      most: 0.03,
      unit: '',
      read: calls('ours-lease-50', 'hot'),
    },
  ]),
  ...group('Eight isolates on one quota, with leases', [
    {
      title: 'requests within the quota that are not admitted',
      most: 1,
      unit: '%',
      read: ({ isolates }) => worst(isolates, ({ share }) => (1 - share) * 100),
    },
    {
      title: 'over-admitted requests',
      most: 0,
      unit: '',
      read: ({ isolates }) => worst(isolates, ({ over }) => over),
    },
  ]),
  ...group('Redis', [
    { title: 'CPU of one limit, relative to a bare INCR', most: 9, unit: '×', read: redis('one') },
    {
      title: 'CPU of three limits, relative to a bare INCR',
      most: 13,
      unit: '×',
      read: redis('three'),
    },
    {
      title: 'CPU per decision in a batch of 16, relative to a bare INCR',
      most: 5,
      unit: '×',
      read: redis('sixteen'),
    },
    { title: 'bytes per client, one limit', most: 120, unit: '', read: bytes('one') },
    { title: 'bytes per client, three limits', most: 200, unit: '', read: bytes('three') },
  ]),
  ...group('Exactness', [
    {
      title: 'over- and under-admitted requests, 256 at once on two isolates',
      most: 0,
      unit: '',
      read: ({ exactness }) => ofOurs(exactness, (one) => one.over + one.under + one.failed),
    },
    {
      title: 'soak test: requests without a valid response',
      most: 0,
      unit: '',
      read: (r) => r.soak?.failed,
    },
  ]),
  ...group('One client floods a cold isolate', [
    {
      title: 'admitted requests, with a limit of 50',
      most: 100,
      unit: '',
      read: ({ overload = [] }) => worst(overload, ({ passed }) => passed),
    },
    {
      title: 'admitted by a fallback, but sent after a refusal by Redis',
      most: 0,
      unit: '',
      read: ({ overload = [] }) => worst(overload, (one) => one.passedAfterRefusal),
    },
    {
      title: 'refused requests of another client within its limit',
      most: 0,
      unit: '',
      read: ({ overload = [] }) => worst(overload, ({ others: [one] }) => one?.refused ?? 0),
    },
    {
      title: 'longest time without a decision by Redis for another client',
      most: 2,
      unit: 's',
      read: ({ overload = [] }) =>
        worst(
          overload,
          ({ others }) => Math.max(0, ...others.map((one) => one.longestFallbackMs)) / 1000,
        ),
    },
  ]),
  ...group('Shards, each with a throttled database', [
    {
      title: 'time for the same decisions, two shards (1.8 × the throughput)',
      most: 0.56,
      unit: '×',
      read: relativeTimeOf(2),
    },
    {
      title: 'time for the same decisions, four shards (3.5 × the throughput)',
      most: 0.29,
      unit: '×',
      read: relativeTimeOf(4),
    },
    {
      title: 'one of two shards down: fallbacks for clients of the other',
      most: 0,
      unit: '',
      read: ({ databases }) => databases?.killed.living.fallback,
    },
  ]),
]

export type Verdict = 'met' | 'not met' | 'not measured'

export function judge({ most, read }: Target, results: Results): [number | undefined, Verdict] {
  const value = read(results)
  if (value === undefined) return [value, 'not measured']
  return [value, value <= most ? 'met' : 'not met']
}
