/** The most requests of one client within any interval. */

/** Clients that are kept before those without a recent request are forgotten. */
const MANY = 100_000

export interface Most {
  requests: number
  /** The client, and the time of the first of these requests. Absent without a request. */
  client?: string
  from?: number
}

/** Counts the requests of each client in the interval that ends with its last request. Times must not decrease. */
export class MostWithin {
  most: Most = { requests: 0 }
  readonly #inMs: number
  /** The times of the last requests of each client. */
  readonly #recent = new Map<string, number[]>()
  #forgetAt = MANY

  constructor(inMs: number) {
    this.#inMs = inMs
  }

  add(client: string, time: number): void {
    const times = this.#recent.get(client) ?? []
    if (times.length === 0) this.#recent.set(client, times)
    const start = times.findIndex((one) => one > time - this.#inMs)
    times.splice(0, start < 0 ? times.length : start)
    times.push(time)
    if (times.length > this.most.requests)
      this.most = { requests: times.length, client, from: times[0]! }
    if (this.#recent.size > this.#forgetAt) this.#forget(time)
  }

  #forget(time: number): void {
    for (const [client, times] of this.#recent) {
      if (times.at(-1)! <= time - this.#inMs) this.#recent.delete(client)
    }
    this.#forgetAt = Math.max(MANY, 2 * this.#recent.size)
  }
}
