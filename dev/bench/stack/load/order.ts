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

/** IPv4 addresses of a network of a variant's own. */
export const addressOf = (network: number, client: number) =>
  `10.${network}.${client >> 8}.${client & 255}`
