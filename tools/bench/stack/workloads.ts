/** The workloads of the benchmark. */
import type { Quota, VariantId } from './variants.ts'

export interface Workload {
  id: string
  title: string
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
  /** The verdict reads this workload. The others are skipped by `--quick`. */
  verdict?: boolean
}

/** Latency in ms that the bridge adds to each HTTP request. */
export const RTT_MS = 10

const HOUR = 3_600_000
const many = { clients: 1000, quotas: [{ limit: 1_000_000, windowMs: HOUR }] }

export const workloads: Workload[] = [
  {
    id: 'lone',
    title: 'One request at a time',
    variants: [
      'bare',
      'same-response',
      'ours',
      'ours-observe',
      'ours-unbatched',
      'ours-edge',
      'ours-limits',
      'ours-objects',
      'upstash-fixed',
      'upstash-sliding',
      'hono',
      'cloudflare',
    ],
    ...many,
    connections: 1,
    verdict: true,
  },
  {
    id: 'closed-64',
    title: '64 at once, many keys',
    variants: [
      'nothing',
      'bare',
      'same-response',
      'shared-response',
      'ours',
      'ours-observe',
      'ours-unbatched',
      'ours-limits-unbatched',
      'ours-objects',
      'upstash-fixed',
      'upstash-sliding',
      'upstash-sliding-cache',
      'hono',
      'cloudflare',
    ],
    ...many,
    connections: 64,
    verdict: true,
  },
  {
    id: 'open-1500',
    title: '1500 requests a second at random times, many keys',
    variants: ['bare', 'same-response', 'ours', 'ours-unbatched', 'upstash-sliding', 'hono'],
    ...many,
    rate: 1500,
    verdict: true,
  },
  {
    id: 'proxied',
    title: '64 at once, many keys, in front of an origin',
    variants: ['nothing', 'bare', 'ours-origin', 'ours-gateway'],
    ...many,
    connections: 64,
    verdict: true,
  },
  {
    id: 'flood',
    title: '64 at once, a flood on 50 exhausted keys',
    variants: [
      'nothing',
      'bare',
      'same-response',
      'ours',
      'ours-uncached',
      'ours-plain',
      'ours-limits',
      'upstash-sliding',
      'upstash-fixed-cache',
      'upstash-sliding-cache',
      'hono',
      'cloudflare',
    ],
    clients: 50,
    quotas: [{ limit: 5, windowMs: HOUR }],
    connections: 64,
    exhausted: true,
    verdict: true,
  },
  {
    id: 'hot',
    title: '64 at once, one hot key',
    variants: [
      'bare',
      'ours',
      'ours-unbatched',
      'ours-lease-10',
      'ours-lease-50',
      'upstash-sliding',
      'hono',
    ],
    ...many,
    clients: 1,
    connections: 64,
  },
  {
    id: 'five',
    title: 'Five policies on one client, one request at a time',
    variants: ['bare', 'ours-one', 'ours', 'upstash-sliding', 'hono'],
    ...many,
    quotas: [1, 2, 3, 4, 5].map((hours) => ({ limit: 1_000_000 * hours, windowMs: HOUR * hours })),
    connections: 1,
  },
]
