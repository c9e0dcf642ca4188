/** Upper bounds of the buckets of the duration of requests, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Values that `Metrics` reads when it is scraped. */
export type Gauges = {
  running: number
  waiting: number
  /** Databases that can run commands, and all databases. */
  up: number
  databases: number
  /** Commands of clients, and those that ran inside scripts and functions. */
  commands: number
  inner: number
}

export const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** Counts requests and writes them in the OpenMetrics text format 1.0. */
export class Metrics {
  readonly #statuses = new Map<number, number>()
  readonly #buckets: number[] = BUCKETS.map(() => 0)
  #count = 0
  #seconds = 0

  add(status: number, seconds: number): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1)
    this.#count++
    this.#seconds += seconds
    const index = BUCKETS.findIndex((bound) => seconds <= bound)
    if (index >= 0) this.#buckets[index]!++
  }

  text(gauges: Gauges): string {
    let below = 0
    const buckets = BUCKETS.map((bound, index) => {
      below += this.#buckets[index]!
      return `_bucket{le="${canonical(bound)}"} ${below}`
    })
    const statuses = [...this.#statuses].map(([status, n]) => `_total{status="${status}"} ${n}`)
    return [
      family('requests', 'counter', 'HTTP requests by status code.', statuses),
      family('commands', 'counter', 'Commands of clients and of their scripts.', [
        `_total{origin="client"} ${gauges.commands}`,
        `_total{origin="script"} ${gauges.inner}`,
      ]),
      family('request_duration_seconds', 'histogram', 'Duration of HTTP requests.', [
        ...buckets,
        `_bucket{le="+Inf"} ${this.#count}`,
        `_sum ${this.#seconds}`,
        `_count ${this.#count}`,
      ]),
      family('requests_running', 'gauge', 'Requests that wait for Redis.', [` ${gauges.running}`]),
      family('requests_waiting', 'gauge', 'Requests in the queue.', [` ${gauges.waiting}`]),
      family('databases', 'gauge', 'Databases.', [` ${gauges.databases}`]),
      family('databases_up', 'gauge', 'Databases that can run commands.', [` ${gauges.up}`]),
      '# EOF\n',
    ].join('')
  }
}

/** OpenMetrics writes the bound of a bucket as a float. */
function canonical(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : `${bound}`
}

function family(name: string, type: string, help: string, samples: string[]): string {
  const full = `upstash_bridge_${name}`
  const unit = name.endsWith('_seconds') ? `# UNIT ${full} seconds\n` : ''
  const lines = samples.map((sample) => `${full}${sample}\n`).join('')
  return `# TYPE ${full} ${type}\n${unit}# HELP ${full} ${help}\n${lines}`
}
