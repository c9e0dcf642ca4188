/** Gives turns by trying one ms after the other, with the algorithms of the oracle. */
import { type Algorithm, algorithms, type Held, type Terms } from './algorithms.ts'

/** One limit of a request. */
export interface TurnLimit {
  name: string
  algorithm: keyof typeof algorithms
  terms: Terms
  cost: bigint
}

/** The states of one subject. */
export class TurnModel {
  readonly #held = new Map<string, Held>()
  #line = 0n

  /** Returns the place of a request, or `null` if its cost never fits. Charges it if it is within the wait. */
  take(limits: TurnLimit[], now: bigint, wait: bigint): bigint | null {
    if (limits.some(({ algorithm, terms, cost }) => cost > algorithms[algorithm].capacity(terms)))
      return null
    let place = now > this.#line ? now : this.#line
    for (const { name } of limits) {
      const { time = 0n } = this.#held.get(name) ?? {}
      if (time > place) place = time
    }
    while (!limits.every((limit) => this.#fits(limit, place))) place += 1n
    if (place > now + wait) return place
    for (const limit of limits) {
      const { algorithm, terms, cost, name } = limit
      if (cost === 0n) continue
      this.#held.set(name, algorithms[algorithm].charge(this.#at(limit, place), cost, place, terms))
    }
    this.#line = place
    return place
  }

  /** Returns the units of a place that was given up. */
  abandon(limits: TurnLimit[], place: bigint, now: bigint): void {
    for (const limit of limits) {
      const { name, cost, terms } = limit
      const held = this.#held.get(name)
      if (!held || cost === 0n) continue
      const t = now > held.time ? now : held.time
      const algorithm: Algorithm = algorithms[limit.algorithm]
      const before = algorithm.at(held, t, terms)
      const after = algorithm.refund(before, cost, t, terms, place, undefined)
      // A state without units is absent: the next charge opens a window of its own.
      if (after.numbers.every((number) => number === 0n)) this.#held.delete(name)
      else this.#held.set(name, after)
    }
  }

  #at({ name, algorithm, terms }: TurnLimit, t: bigint): Held {
    return algorithms[algorithm].at(this.#held.get(name), t, terms)
  }

  #fits(limit: TurnLimit, t: bigint): boolean {
    const { algorithm, cost, terms } = limit
    return cost === 0n || algorithms[algorithm].fits(this.#at(limit, t), cost, t, terms)
  }
}
