/** The traffic of a simulation. */

/** One request, as a client sends it. */
export interface Arrival {
  /** ms since the epoch */
  at: number
  ip: string
  method: string
  url: string
  headers?: Record<string, string> | undefined
  country?: string | undefined
  asn?: number | undefined
  colo?: string | undefined
  /** The status of the origin's response, if it is admitted. */
  status: number
  /** How long the origin takes. */
  durationMs: number
  /** The body of the origin's response: JSON. */
  body?: string | undefined
}

export const patterns = ['steady', 'edge', 'burst', 'clients', 'flood', 'log'] as const
export type Pattern = (typeof patterns)[number]

/** What the page asks for. */
export interface TrafficOptions {
  pattern: Pattern
  /** The number of requests. */
  requests: number
  /** The length of the traffic, ms. */
  lengthMs: number
  /** The number of clients. */
  clients: number
  method: string
  url: string
  status: number
  durationMs: number
  /** The body of a response: JSON, for costs that are in it. */
  body: string
}

/** Noon of a Monday in UTC: the start of a window of any usual length. */
export const START = Date.UTC(2026, 0, 5, 12)
export const MAX_REQUESTS = 2000

/** The first address of the clients. The client of interest has it. */
export const addressOf = (client: number) => `203.0.${113 + (client >> 8)}.${(client & 255) + 1}`

/** Numbers from 0 to 1, the same for each run (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** When each client sends, in ms from the start. */
type Sent = { at: number; client: number }

const evenly = (count: number, from: number, lengthMs: number, client = 0): Sent[] =>
  Array.from({ length: count }, (_, n) => ({
    at: Math.floor(from + (n * lengthMs) / count),
    client,
  }))

/**
 * @param windowMs the window of the first policy, whose edge is attacked
 * @param limit its limit
 */
const makers: Record<
  Exclude<Pattern, 'log'>,
  (options: TrafficOptions, windowMs: number, limit: number) => Sent[]
> = {
  steady: ({ requests, lengthMs }) => evenly(requests, 0, lengthMs),
  // Just before a window ends, the whole quota; from its end on, as much as passes.
  edge({ requests, lengthMs }, windowMs, limit) {
    const before = Math.min(limit, Math.floor(requests / 2))
    const edge = Math.min(windowMs, lengthMs / 2)
    const rest = Math.max(1, Math.min(windowMs, lengthMs - edge))
    const spanMs = Math.min(windowMs / 12, edge)
    return [
      ...evenly(before, edge - spanMs, spanMs),
      ...evenly(Math.min(limit, requests - before), edge, spanMs),
      ...evenly(Math.max(0, requests - before - limit), edge + spanMs, rest - spanMs),
    ]
  },
  // The same number of requests, in three bursts.
  burst({ requests, lengthMs }, windowMs) {
    const each = Math.ceil(requests / 3)
    const spanMs = Math.min(windowMs / 20, lengthMs / 12)
    return [0.1, 0.4, 0.7].flatMap((part, n) =>
      evenly(Math.min(each, Math.max(0, requests - n * each)), lengthMs * part, spanMs),
    )
  },
  clients({ requests, lengthMs, clients }) {
    const random = randomFrom(1)
    return Array.from({ length: requests }, () => ({
      at: Math.floor(random() * lengthMs),
      // Squared, so that a few clients send more than the others.
      client: Math.floor(random() ** 2 * clients),
    }))
  },
  // One client sends nine of ten requests in the middle third.
  flood({ requests, lengthMs, clients }) {
    const random = randomFrom(2)
    const others = Math.floor(requests / 10)
    return [
      ...evenly(requests - others, lengthMs / 3, lengthMs / 3),
      ...Array.from({ length: others }, () => ({
        at: Math.floor(random() * lengthMs),
        client: 1 + Math.floor(random() * Math.max(1, clients - 1)),
      })),
    ]
  },
}

/**
 * Makes the requests of a pattern, in the order of their times.
 * @param nameOf names a client by its number. Defaults to an address
 */
export function arrivalsOf(
  options: TrafficOptions,
  { windowMs, limit }: { windowMs: number; limit: number },
  nameOf = addressOf,
): Arrival[] {
  const { pattern, method, url, status, durationMs, body } = options
  if (pattern === 'log') return []
  return makers[pattern](options, windowMs, limit)
    .slice(0, MAX_REQUESTS)
    .sort((one, other) => one.at - other.at)
    .map(({ at, client }) => ({
      at: START + at,
      ip: nameOf(client),
      method,
      url,
      status,
      durationMs,
      ...(body && { body }),
    }))
}
