/** What we set out to reach, and how to read whether we have. */
import { added, figure, type Results, ratio } from './results.ts'
import type { Samples } from './run.ts'
import type { VariantId } from './variants.ts'

export interface Target {
  of: string
  title: string
  /** The most that it may be. */
  most: number
  unit: string
  /** `undefined` where it was not measured. */
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
/** The variant that has it switched off, or ours where there is no such switch yet. */
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

/** How long as many decisions take, each a call of its own, of the time that one database takes for them. */
const timeOf =
  (count: number) =>
  ({ databases }: Results) => {
    const of = (count: number) =>
      databases?.scale.find((one) => one.databases === count && !one.shared)?.perSecond
    const [one, many] = [of(1), of(count)]
    return one === undefined || many === undefined ? undefined : one / many
  }

export const targets: Target[] = [
  ...group('One request at a time, 10 ms away', [
    { title: 'p50 over a bare GET', most: 0.3, unit: 'ms', read: p50('ours', 'lone') },
    { title: 'p99 over a bare GET', most: 2, unit: 'ms', read: p99('ours', 'lone') },
    { title: 'billed, admitted', most: 4, unit: '', read: billed('ours', 'lone') },
    { title: 'billed, clock edge', most: 3, unit: '', read: billed('ours-edge', 'lone') },
  ]),
  ...group('Five policies on one client', [
    { title: 'billed', most: 4, unit: '', read: billed('ours', 'five') },
    {
      title: 'p50, as many times one policy',
      most: 1.1,
      unit: '×',
      read: (results) =>
        ratio(under(results, 'five'), 'ours', 'ours-one', (sample) => sample.p50)?.median,
    },
  ]),
  ...group('1500 requests a second at random times, 10 ms away', [
    { title: 'HTTP calls a decision', most: 0.7, unit: '', read: calls('ours', 'open-1500') },
    {
      title: 'p50 over a bare GET (none, but for what a lone request may)',
      most: 0.3,
      unit: 'ms',
      read: p50('ours', 'open-1500'),
    },
  ]),
  ...group('64 at once, many keys, 10 ms away', [
    { title: 'HTTP calls a decision', most: 0.1, unit: '', read: calls('ours', 'closed-64') },
    { title: 'billed', most: 1.5, unit: '', read: billed('ours', 'closed-64') },
    {
      title: 'Worker CPU, bare GETs',
      most: 0.55,
      unit: '×',
      read: cpu('ours', 'bare', 'closed-64'),
    },
    {
      title: 'Worker CPU, not shared, bare GETs',
      most: 1.1,
      unit: '×',
      read: either((id) => cpu(id, 'bare', 'closed-64'), 'ours-unshared'),
    },
  ]),
  ...group('A flood on exhausted keys', [
    {
      title: 'billed, refused by Redis',
      most: 3,
      unit: '',
      read: either((id) => billed(id, 'flood'), 'ours-plain'),
    },
    { title: 'billed, proven refusal', most: 0.01, unit: '', read: billed('ours', 'flood') },
    { title: 'HTTP calls a decision', most: 0.004, unit: '', read: calls('ours', 'flood') },
    {
      title: 'Worker CPU, Workers that do nothing',
      most: 1.2,
      unit: '×',
      read: cpu('ours', 'nothing', 'flood'),
    },
    {
      title: 'refused after exactly the wait it was told',
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
      title: 'share of it that Redis sees',
      most: 0.05,
      unit: '',
      read: ({ shield }) => shield?.reached,
    },
  ]),
  ...group('64 at once, one hot key, 10 ms away', [
    {
      title: 'HTTP calls a decision, leases of 10',
      most: 0.11,
      unit: '',
      read: calls('ours-lease-10', 'hot'),
    },
    {
      title: 'HTTP calls a decision, leases of 50',
      most: 0.03,
      unit: '',
      read: calls('ours-lease-50', 'hot'),
    },
  ]),
  ...group('Eight isolates on one quota, with leases', [
    {
      title: 'not admitted of what was due',
      most: 1,
      unit: '%',
      read: ({ isolates }) => worst(isolates, ({ share }) => (1 - share) * 100),
    },
    {
      title: 'over',
      most: 0,
      unit: '',
      read: ({ isolates }) => worst(isolates, ({ over }) => over),
    },
  ]),
  ...group('Redis', [
    { title: 'CPU of one limit, bare INCRs', most: 9, unit: '×', read: redis('one') },
    { title: 'CPU of three limits, bare INCRs', most: 13, unit: '×', read: redis('three') },
    { title: 'CPU each of 16 that share a call', most: 5, unit: '×', read: redis('sixteen') },
    { title: 'bytes a key, one limit', most: 120, unit: '', read: bytes('one') },
    { title: 'bytes a key, three limits', most: 200, unit: '', read: bytes('three') },
  ]),
  ...group('Exactness', [
    {
      title: 'over and under, 256 at once on two isolates',
      most: 0,
      unit: '',
      read: ({ exactness }) => ofOurs(exactness, (one) => one.over + one.under + one.failed),
    },
    {
      title: 'soak: requests without a proper answer',
      most: 0,
      unit: '',
      read: (r) => r.soak?.failed,
    },
  ]),
  ...group('One client floods a cold isolate', [
    {
      title: 'requests that pass a limit of 50',
      most: 100,
      unit: '',
      read: ({ overload = [] }) => worst(overload, ({ passed }) => passed),
    },
    {
      title: 'of them by a fallback, sent after Redis had refused one',
      most: 0,
      unit: '',
      read: ({ overload = [] }) => worst(overload, (one) => one.passedAfterRefusal),
    },
    {
      title: 'requests refused of another client within its limit',
      most: 0,
      unit: '',
      read: ({ overload = [] }) => worst(overload, ({ others: [one] }) => one?.refused ?? 0),
    },
    {
      title: 'the longest time for which Redis does not decide for another client',
      most: 2,
      unit: 's',
      read: ({ overload = [] }) =>
        worst(
          overload,
          ({ others }) => Math.max(0, ...others.map((one) => one.longestFallbackMs)) / 1000,
        ),
    },
  ]),
  ...group('Many databases, each with its limit of commands', [
    {
      title: 'time of as many decisions, two (1.8 × as many)',
      most: 0.56,
      unit: '×',
      read: timeOf(2),
    },
    { title: 'the same, four (3.5 × as many)', most: 0.29, unit: '×', read: timeOf(4) },
    {
      title: 'one of two away: not decided by Redis, of clients of the other',
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
