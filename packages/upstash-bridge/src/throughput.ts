import { setTimeout as sleep } from 'node:timers/promises'

/** Limits the commands per second. Further commands wait and do not fail, as at Upstash. */
export class Throughput {
  /** When the time of all commands so far is used up, in ms of `performance.now()`. */
  #free = 0
  readonly #eachMs: number

  /** @param perSecond maximum commands per second; `undefined` means no limit */
  constructor(perSecond: number | undefined) {
    this.#eachMs = perSecond === undefined ? 0 : 1000 / perSecond
  }

  add(commands: number): void {
    if (this.#eachMs > 0) {
      this.#free = Math.max(this.#free, performance.now()) + commands * this.#eachMs
    }
  }

  /** Resolves when the time of all added commands is used up. */
  async turn(): Promise<void> {
    const ms = this.#free - performance.now()
    if (ms > 0) await sleep(ms)
  }
}
