import { BadRequest } from './request.ts'

/** Bounds the requests that run at the same time, and those that wait for their turn. */
export class Admission {
  readonly #maxRunning: number
  readonly #maxWaiting: number
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor(maxRunning: number, maxWaiting: number) {
    this.#maxRunning = maxRunning
    this.#maxWaiting = maxWaiting
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** @throws BadRequest with 429 when too many requests wait. */
  check(): void {
    if (this.#running < this.#maxRunning || this.#waiting.size < this.#maxWaiting) return
    const message = `ERR the bridge is overloaded: ${this.#waiting.size} requests are waiting`
    throw new BadRequest(message, 429, { 'retry-after': '1' })
  }

  /** Runs `work` when it is its turn, first come, first served. @throws BadRequest with 429 when too many wait. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    this.check()
    if (this.#running < this.#maxRunning) this.#running++
    else await new Promise<void>((resolve) => this.#waiting.add(resolve))
    try {
      return await work()
    } finally {
      const [next] = this.#waiting
      if (next) {
        this.#waiting.delete(next)
        next() // takes over this place
      } else this.#running--
    }
  }
}
