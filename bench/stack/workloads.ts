/** The workloads of the benchmark. */
import type { Quota, VariantId } from './variants.ts'

export interface Workload {
  id: string
  title: string
  /** Latency in ms that the bridge adds to each HTTP request. */
  rtt: 0 | 10 | 30
  variants: VariantId[]
  /** Number of clients. Each is equally likely. */
  clients: number
  quotas: Quota[]
  /** Closed loop: the number of connections. Each sends a request, waits for the response, and sends the next. */
  connections?: number
  /** Open loop: requests per second, at random times, regardless of earlier responses. */
  rate?: number
  /** All requests are refused, since the quotas are used up before the measurement. */
  exhausted?: boolean
  /** Skipped by `--quick`. */
  thorough?: boolean
}

const HOUR = 3_600_000
const MANY = 1000
/** A quota at which no request is refused. */
const ample: Quota[] = [{ limit: 1_000_000, windowMs: HOUR }]
const five: Quota[] = [1, 2, 3, 4, 5].map((hours) => ({
  limit: 1_000_000 * hours,
  windowMs: HOUR * hours,
}))

const few: VariantId[] = ['bare', 'ours', 'ours-unbatched', 'upstash-sliding', 'hono']
const lone = { clients: MANY, quotas: ample, connections: 1 }
const closed = { rtt: 10, clients: MANY, quotas: ample } as const

export const workloads: Workload[] = [
  {
    id: 'lone',
    title: 'One request at a time',
    rtt: 10,
    variants: [...few, 'ours-edge', 'upstash-fixed', 'upstash-bucket'],
    ...lone,
  },
  {
    id: 'lone-near',
    title: 'One request at a time',
    rtt: 0,
    variants: ['bare', 'ours', 'upstash-sliding', 'hono'],
    thorough: true,
    ...lone,
  },
  {
    id: 'lone-far',
    title: 'One request at a time',
    rtt: 30,
    variants: ['bare', 'ours', 'upstash-sliding', 'hono'],
    thorough: true,
    ...lone,
  },
  {
    id: 'closed-16',
    title: '16 at once, many keys',
    variants: few,
    connections: 16,
    thorough: true,
    ...closed,
  },
  {
    id: 'closed-64',
    title: '64 at once, many keys',
    variants: [
      'nothing',
      ...few,
      'ours-edge',
      'ours-fixed',
      'ours-bucket',
      'upstash-fixed',
      'upstash-bucket',
      'upstash-sliding-cache',
    ],
    connections: 64,
    ...closed,
  },
  { id: 'closed-256', title: '256 at once, many keys', variants: few, connections: 256, ...closed },
  {
    id: 'hot',
    title: '64 at once, one hot key',
    variants: [...few, 'ours-lease-10', 'ours-lease-50'],
    connections: 64,
    ...closed,
    clients: 1,
  },
  {
    id: 'flood',
    title: '64 at once, a flood on 50 exhausted keys',
    rtt: 10,
    variants: [
      'nothing',
      'bare',
      'ours',
      'ours-uncached',
      'ours-plain',
      'upstash-fixed',
      'upstash-sliding',
      'upstash-fixed-cache',
      'upstash-sliding-cache',
      'upstash-bucket-cache',
      'hono',
    ],
    clients: 50,
    quotas: [{ limit: 5, windowMs: HOUR }],
    connections: 64,
    exhausted: true,
  },
  {
    id: 'five',
    title: 'Five policies on one client, one request at a time',
    rtt: 10,
    variants: ['bare', 'ours-one', 'ours', 'upstash-sliding', 'hono'],
    ...lone,
    quotas: five,
  },
  {
    id: 'five-64',
    title: 'Five policies on one client, 64 at once',
    variants: ['bare', 'ours-one', 'ours', 'ours-unbatched', 'upstash-sliding', 'hono'],
    connections: 64,
    thorough: true,
    ...closed,
    quotas: five,
  },
  {
    id: 'open-300',
    title: '300 requests a second at random times, many keys',
    variants: few,
    thorough: true,
    rate: 300,
    ...closed,
  },
  {
    id: 'open-1500',
    title: '1500 requests a second at random times, many keys',
    variants: few,
    rate: 1500,
    ...closed,
  },
]
