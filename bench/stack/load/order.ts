/** What the process that makes the load is told, and what it tells. */
export interface Order {
  /** Of the isolates, which take turns. */
  ports: number[]
  /** Whose addresses: `10.<network>.…`, so many of them. */
  network: number
  clients: number
  /** Closed loop. */
  connections?: number
  /** Open loop, requests a second. */
  rate?: number
  /** It ends after so long, or after so many requests, each client by turns. */
  ms?: number
  requests?: number
  /** The share of requests whose client leaves before the answer. */
  hangUps?: number
}

export interface Outcome {
  /** Requests that were answered or ought to have been. */
  count: number
  /** How many had each status; 0 is none. */
  statuses: Record<number, number>
  hangUps: number
  /** Of each request, ms. */
  latencies: Float64Array
  elapsedMs: number
  /** The share of one processor that the load itself took. */
  busy: number
  /** Open loop: by how much all but one in a hundred requests were at most too late, ms. */
  lateMs: number
}

/** A flood of one client, with others beside it. */
export interface FloodOrder {
  port: number
  /** Connections of the flooding client: each sends, waits for the answer, and sends again. */
  connections: number
  ms: number
  /** Part of each request of the flood that is new every time. */
  vary?: 'query' | 'header'
  /** Size of a request's body; without it requests are GETs. */
  bodyBytes?: number
  /** Other clients, each with its requests per second. */
  others: number[]
}

/** Answers that one client got. */
export interface ClientOutcome {
  passed: number
  refused: number
  /** Neither 200 nor 429. */
  failed: number
  /** Answers that the store had not decided. */
  fallbacks: number
  /** The longest time from an answer by a fallback to the next one by the store. */
  longestFallbackMs: number
}

export interface FloodOutcome {
  flood: ClientOutcome
  /** Requests that passed without the store, although they were sent after it had refused one. */
  passedAfterRefusal: number
  others: ClientOutcome[]
}

/** The address of the flooding client. */
export const FLOOD_ADDRESS = '10.66.0.1'
/** The address of another client beside a flood. */
export const otherAddress = (index: number) => `10.66.1.${index}`

/** IPv4 addresses of a network of a variant's own. */
export const addressOf = (network: number, client: number) =>
  `10.${network}.${client >> 8}.${client & 255}`
