/** An order for the load generator. */
export interface Order {
  /** Ports of the isolates. Connections are spread over them. */
  ports: number[]
  /** Selects the addresses of the clients: `10.<network>.…`. */
  network: number
  clients: number
  /** Number of connections, for a closed loop. */
  connections?: number
  /** Requests per second, for an open loop. */
  rate?: number
  /** Ends the load after this time, or after this number of requests, with the clients in turn. */
  ms?: number
  requests?: number
  /** The share of requests whose client disconnects early. */
  hangUps?: number
}

export interface Outcome {
  /** Requests, without those whose client disconnected early. */
  count: number
  /** Number of responses by status; 0 counts requests without a response. */
  statuses: Record<number, number>
  hangUps: number
  /** Latency of each request, in ms. */
  latencies: Float64Array
  elapsedMs: number
  /** CPU usage of the load generator: 1 is one CPU. */
  busy: number
  /** Open loop: the 99th percentile of the delay between scheduled and actual sending, in ms. */
  lateMs: number
}

/** An order for a flood of one client, with requests of other clients. */
export interface FloodOrder {
  port: number
  /** Connections of the flooding client: each sends, waits for the answer, and sends again. */
  connections: number
  ms: number
  /** The part of the flooding client's requests that differs each time. */
  vary?: 'query' | 'header'
  /** Other clients, each with its requests per second. */
  others: number[]
}

/** The responses to one client. */
export interface ClientOutcome {
  passed: number
  refused: number
  /** Responses other than 200 and 429, and requests without a response. */
  failed: number
  /** Responses by a fallback. */
  fallbacks: number
  /** The longest time in ms from a response by a fallback to the next response by the store. */
  longestFallbackMs: number
}

export interface FloodOutcome {
  flood: ClientOutcome
  /** Requests that a fallback admitted, although they were sent after a refusal by the store. */
  passedAfterRefusal: number
  others: ClientOutcome[]
}

/** The address of the flooding client. */
export const FLOOD_ADDRESS = '10.66.0.1'
/** The address of another client beside a flood. */
export const otherAddress = (index: number) => `10.66.1.${index}`

/** The IPv4 address of a client. Each variant has its own network. */
export const addressOf = (network: number, client: number) =>
  `10.${network}.${client >> 8}.${client & 255}`
