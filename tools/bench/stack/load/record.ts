import { quantile } from '../../statistics.ts'
import type { Outcome } from './order.ts'

/** Collects the results of requests. */
export class Record {
  readonly #latencies: number[] = []
  readonly #statuses: Outcome['statuses'] = {}
  readonly #late: number[] = []
  readonly #started = performance.now()
  readonly #cpu = process.cpuUsage()
  hangUps = 0

  answered(status: number, latencyMs: number): void {
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1
    this.#latencies.push(latencyMs)
  }

  sent(lateMs: number): void {
    this.#late.push(lateMs)
  }

  end(): Outcome {
    const elapsedMs = performance.now() - this.#started
    const { user, system } = process.cpuUsage(this.#cpu)
    return {
      count: this.#latencies.length,
      statuses: this.#statuses,
      hangUps: this.hangUps,
      latencies: Float64Array.from(this.#latencies),
      elapsedMs,
      busy: (user + system) / 1000 / elapsedMs,
      lateMs: this.#late.length > 0 ? quantile(this.#late, 0.99) : 0,
    }
  }
}
