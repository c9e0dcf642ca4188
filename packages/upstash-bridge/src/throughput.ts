import { setTimeout as sleep } from 'node:timers/promises'

/** Throttles commands per second. As at Upstash, further commands wait, they do not fail. */
export class Throughput {
  /** When all commands so far have had their time, ms of `performance.now()`. */
  #free = 0
  readonly #eachMs: number

  /** @param perSecond no limit where it is missing */
  constructor(perSecond: number | undefined) {
    this.#eachMs = perSecond === undefined ? 0 : 1000 / perSecond
  }

  add(commands: number): void {
    if (this.#eachMs > 0) {
      this.#free = Math.max(this.#free, performance.now()) + commands * this.#eachMs
    }
  }

  /** Resolves when all that were added have had their time. */
  async turn(): Promise<void> {
    const ms = this.#free - performance.now()
    if (ms > 0) await sleep(ms)
  }
}
