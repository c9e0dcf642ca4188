/** The verdict: Sluice and other limiters, row by row, with the targets. */
import { median, type Spread, spread } from '../statistics.ts'
import type { Wholes } from './legs/size.ts'
import type { Sample } from './measure.ts'
import type { RedisCost } from './redis-cost.ts'
import { differences, each, type Results, ratios } from './results.ts'
import type { VariantId } from './variants.ts'

export const limiters = {
  sluice: 'Sluice',
  floor: 'Floor',
  peer: '@upstash/ratelimit',
  hono: 'hono-rate-limiter',
  cloudflare: "Cloudflare's binding, simulated",
}
export type LimiterId = keyof typeof limiters

/** The value of a limiter in each round, relative to the same baseline; `undefined` if it was not measured. */
type Values = (results: Results, limiter: LimiterId) => number[] | undefined

export interface Row {
  what: string
  unit: '×' | 'ms' | 'bytes' | 'KiB' | ''
  values: Values
  /** The maximum for Sluice. */
  most?: number
  /** The maximum relative to the peer. */
  mostOfPeer?: number
  /** The maximum difference from the peer. */
  mostOverPeer?: number
  /** Why Sluice takes more than the peer, or more than its target. */
  why: string
}

const variantOf: Record<LimiterId, VariantId> = {
  sluice: 'ours',
  floor: 'same-response',
  peer: 'upstash-sliding',
  hono: 'hono',
  cloudflare: 'cloudflare',
}

/** Reads the samples of a workload. `ids` replaces the variants of some limiters. */
const inWorkload =
  (
    workload: string,
    values: (samples: Results['workloads'][string], id: VariantId) => number[] | undefined,
    ids: Partial<typeof variantOf> = {},
  ): Values =>
  ({ workloads }, limiter) =>
    values(workloads[workload] ?? {}, { ...variantOf, ...ids }[limiter])

const cpuOver = (base: VariantId, workload: string, ids?: Partial<typeof variantOf>) =>
  inWorkload(workload, (samples, id) => ratios(samples, id, base, ({ workerUs }) => workerUs), ids)
const addedP50 = (workload: string) =>
  inWorkload(workload, (samples, id) => differences(samples, id, 'bare', ({ p50 }) => p50))
const perDecision = (workload: string, read: (sample: Sample) => number) =>
  inWorkload(workload, (samples, id) => each(samples, id, read))

/** @param algorithms the beginnings of their names */
const inRedis =
  (
    algorithms: Partial<Record<LimiterId, string>>,
    read: (cost: RedisCost) => number[] | undefined,
  ): Values =>
  ({ redis = [] }, limiter) => {
    const name = algorithms[limiter]
    const cost = redis.find(
      ({ by, algorithm }) => name && by === limiters[limiter] && algorithm.startsWith(name),
    )
    return cost && read(cost)
  }
const one = {
  floor: 'one record',
  sluice: 'sliding window',
  peer: 'sliding window',
  hono: 'fixed window',
}
const three = { sluice: 'three limits', peer: 'three limits' }
/** The peer makes 16 calls. */
const sixteen = { sluice: '16 requests', peer: 'sliding window' }
const bytes = ({ bytes: found }: RedisCost) => found && [Math.max(found.ipv4, found.ipv6)]

const size =
  (of: 'library' | 'worker', ids?: Partial<typeof variantOf>): Values =>
  ({ sizes = [] }, limiter) => {
    const found = sizes.find(({ id }) => id === { ...variantOf, ...ids }[limiter])
    return found && [found[of]]
  }

/** @param peers what it stands beside. Defaults to the Workers of the peers, which have the limiter only */
const whole =
  (of: keyof Wholes, peers: 'library' | 'worker' = 'worker'): Values =>
  (results, limiter) =>
    limiter === 'sluice' ? results.wholes && [results.wholes[of]] : size(peers)(results, limiter)

const coldStart =
  (ids?: Partial<typeof variantOf>): Values =>
  ({ coldStarts = {} }, limiter) => {
    const empty = coldStarts.nothing
    const own = coldStarts[{ ...variantOf, ...ids }[limiter]]
    return empty && own?.map((ms, round) => ms - empty[round]!)
  }

/** Only Sluice has a gateway. */
const gatewayOver: Values = ({ workloads: { proxied = {} } }, limiter) =>
  limiter === 'sluice'
    ? ratios(proxied, 'ours-gateway', 'ours-origin', ({ workerUs }) => workerUs)
    : undefined

const FIELDS =
  'Sluice parses the address, hashes the name of the client, sets response fields and keeps a deadline; the Worker of the peer does none of this.'
const BY_NAME =
  'A call of `limits` also has a breaker, a deadline, a fallback and the exact times of its answer.'
const SCRIPT =
  'The script takes the time from Redis, not from a Worker, and every algorithm is in one script. EVALSHA costs as much as two INCR before a script begins.'

export const rows: Row[] = [
  {
    what: 'Worker CPU, one request at a time (× a bare GET)',
    unit: '×',
    values: cpuOver('bare', 'lone'),
    mostOfPeer: 0.97,
    why: FIELDS,
  },
  {
    what: 'Worker CPU, 64 at once, not batched (× a bare GET)',
    unit: '×',
    values: cpuOver('bare', 'closed-64', { sluice: 'ours-unbatched' }),
    mostOfPeer: 0.92,
    why: FIELDS,
  },
  {
    what: 'Worker CPU, 64 at once, batched by default (× a bare GET)',
    unit: '×',
    values: cpuOver('bare', 'closed-64', { floor: 'shared-response' }),
    most: 0.68,
    why: 'A batch saves calls, but each request still has its own promise, timer and response fields.',
  },
  {
    what: 'Worker CPU of a refusal from the denial cache (× an empty Worker)',
    unit: '×',
    values: cpuOver('nothing', 'flood', { peer: 'upstash-sliding-cache' }),
    mostOfPeer: 1,
    why: 'A refusal of Sluice has a problem document and exact fields; that of the peer is a short text.',
  },
  {
    what: 'Latency over a bare GET, one request at a time, p50',
    unit: 'ms',
    values: addedP50('lone'),
    most: 0.2,
    why: 'The difference is CPU of the Worker and of Redis, at a low rate on cold caches.',
  },
  {
    what: 'Latency over a bare GET, 1500 requests a second at random times, p50',
    unit: 'ms',
    values: addedP50('open-1500'),
    most: 0.8,
    why: 'A request in whose millisecond another one has left waits for its end. This buys half of the bill: the next row.',
  },
  {
    what: 'Calls to Redis per decision, the same load',
    unit: '',
    values: perDecision('open-1500', ({ calls }) => calls),
    most: 0.7,
    why: 'Few requests arrive close enough together to be in one batch.',
  },
  {
    what: 'Redis CPU, one limit, admitted (× an INCR)',
    unit: '×',
    values: inRedis(one, ({ cpu }) => cpu?.admitted),
    most: 8,
    mostOfPeer: 1.25,
    why: SCRIPT,
  },
  {
    what: 'Redis CPU, one limit, refused (× an INCR)',
    unit: '×',
    values: inRedis(one, ({ cpu }) => cpu?.refused),
    most: 6.5,
    mostOfPeer: 1.25,
    why: SCRIPT,
  },
  {
    what: 'Redis CPU, three limits, admitted (× an INCR)',
    unit: '×',
    values: inRedis(three, ({ cpu }) => cpu?.admitted),
    most: 13,
    mostOfPeer: 0.75,
    why: SCRIPT,
  },
  {
    what: 'Redis CPU, each of 16 decisions at once (× an INCR)',
    unit: '×',
    values: inRedis(sixteen, ({ cpu }) => cpu?.admitted),
    most: 5,
    why: 'Each of the 16 decisions still reads and writes its own record.',
  },
  {
    what: 'Memory in Redis for a client, one limit',
    unit: 'bytes',
    values: inRedis(one, bytes),
    most: 120,
    why: 'A record also contains the version and the kind of the limit.',
  },
  {
    what: 'Memory in Redis for a client, three limits',
    unit: 'bytes',
    values: inRedis(three, bytes),
    most: 200,
    why: 'A record also contains the version and the kind of each limit.',
  },
  {
    what: 'Code of the Worker that `sluice init` writes, gzip (the peers: a Worker with the limiter only)',
    unit: 'KiB',
    values: whole('ofInit'),
    most: 58,
    why: 'The Worker also contains the proxy, the decision API, the entrypoint for other Workers, `observe()` and two features.',
  },
  {
    what: 'Code of the Worker of this repository, gzip (the same peers)',
    unit: 'KiB',
    values: whole('own'),
    most: 76,
    why: '17 KiB are `@upstash/redis`, which has a method for each command. The others are those of the row above.',
  },
  {
    what: 'Code of the limiter as a library, built, gzip, without Hono',
    unit: 'KiB',
    values: size('library'),
    most: 28,
    why: 'The library contains keys, lists, costs, shadow policies, the fallback, the breaker and batching.',
  },
  {
    what: 'The same, where `onStoreError` counts nothing locally',
    unit: 'KiB',
    values: whole('withoutLocal', 'library'),
    most: 26,
    why: 'The library contains keys, lists, costs, shadow policies, the fallback, the breaker and batching.',
  },
  {
    what: 'CPU of a cold start until the first answer (over an empty Worker)',
    unit: 'ms',
    values: coldStart(),
    mostOverPeer: -4,
    why: 'There is more code to compile; Hono is part of it.',
  },
  {
    what: '`limits` by name and key: Worker CPU, one call at a time (× a bare GET)',
    unit: '×',
    values: cpuOver('bare', 'lone', { sluice: 'ours-limits' }),
    mostOfPeer: 0.95,
    why: BY_NAME,
  },
  {
    what: '`limits`: Worker CPU, 64 at once, not batched (× a bare GET)',
    unit: '×',
    values: cpuOver('bare', 'closed-64', { sluice: 'ours-limits-unbatched' }),
    mostOfPeer: 0.95,
    why: BY_NAME,
  },
  {
    what: '`limits`: Worker CPU of a refusal from the denial cache (× an empty Worker)',
    unit: '×',
    values: cpuOver('nothing', 'flood', { sluice: 'ours-limits', peer: 'upstash-sliding-cache' }),
    mostOfPeer: 0.95,
    why: BY_NAME,
  },
  {
    what: '`limits`: code as a library, built, gzip',
    unit: 'KiB',
    values: size('library', { sluice: 'ours-limits' }),
    most: 20,
    why: 'It contains a fallback, a breaker and batching.',
  },
  {
    what: '`limits`: CPU of a cold start until the first answer (over an empty Worker)',
    unit: 'ms',
    values: coldStart({ sluice: 'ours-limits' }),
    mostOfPeer: 0.8,
    why: 'There is more code to compile.',
  },
  {
    what: 'Worker CPU of the gateway, 64 at once (× the middleware with the same call to the origin)',
    unit: '×',
    values: gatewayOver,
    most: 1.5,
    why: 'The gateway copies the request and the response, drops the fields that claim another client, and bounds the wait for the origin.',
  },
]

export interface Verdict {
  row: Row
  sluice: Spread
  peer: Spread | undefined
  /** Sluice against the peer: the median of the ratios, or for `ms` of the differences, of each round. */
  against: Spread | undefined
  result: 'better' | 'even' | 'worse' | undefined
  isMet: boolean
}

/** The verdict on a row; `undefined` if it was not measured. */
export function judgeRow(row: Row, results: Results): Verdict | undefined {
  const sluice = row.values(results, 'sluice')
  if (!sluice) return undefined
  const peer = row.values(results, 'peer')
  const isDifference = row.unit === 'ms'
  const against =
    peer && spread(sluice.map((own, n) => (isDifference ? own - peer[n]! : own / peer[n]!)))
  // Compares rounded values, as they are shown.
  const distance = against && round(against.median) - (isDifference ? 0 : 1)
  const result =
    distance === undefined || Number.isNaN(distance)
      ? undefined
      : distance === 0 || includesParity(against!, isDifference ? 0 : 1)
        ? 'even'
        : distance < 0
          ? 'better'
          : 'worse'
  const { most = Number.POSITIVE_INFINITY, mostOfPeer, mostOverPeer } = row
  const ofPeer = isDifference ? median(sluice) / median(peer ?? []) : against?.median
  const isWithinPeer =
    (mostOfPeer === undefined || (ofPeer !== undefined && round(ofPeer) <= mostOfPeer)) &&
    (mostOverPeer === undefined || (distance !== undefined && distance <= mostOverPeer))
  // Another run of an even row can say that the peer is better.
  const isEven = result === 'even'
  const wantsBetter = (mostOfPeer ?? 2) <= 1 || (mostOverPeer ?? 1) <= 0
  return {
    row,
    sluice: spread(sluice),
    peer: peer && spread(peer),
    against,
    result,
    isMet: isWithinPeer && !(isEven && wantsBetter) && round(median(sluice)) <= most,
  }
}

/** The verdict of several runs, with the figures of the first. A row is better or worse, and meets its target, only if each run says so. */
export function judgeRuns(row: Row, [first, ...others]: [Results, ...Results[]]) {
  const verdict = judgeRow(row, first)
  if (!verdict) return undefined
  const again = others.flatMap((run) => judgeRow(row, run) ?? [])
  const isSame = again.every(({ result }) => result === verdict.result)
  return {
    ...verdict,
    again,
    result: isSame ? verdict.result : 'even',
    isMet: [verdict, ...again].every(({ isMet }) => isMet),
  }
}

/** Whether half of the rounds are on both sides of parity, so that the next run can say the opposite. */
const includesParity = ({ low, high }: Spread, parity: number) =>
  round(low) < parity && round(high) > parity

const round = (value: number) => Math.round(value * 100) / 100
