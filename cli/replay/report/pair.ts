import type { Bounds } from './types.ts'

/** A count in both ways to spread the requests of a second. */
export class Pair {
  spread = 0
  burst = 0

  add(inSpread: boolean, inBurst: boolean): void {
    if (inSpread) this.spread += 1
    if (inBurst) this.burst += 1
  }

  get low(): number {
    return Math.min(this.spread, this.burst)
  }

  get high(): number {
    return Math.max(this.spread, this.burst)
  }

  bounds(): Bounds {
    return { low: this.low, high: this.high }
  }
}

/** Counts one more of a client, and the client itself when it is its first one. */
export function countOf(own: Pair, clients: Pair, inSpread: boolean, inBurst: boolean): void {
  clients.add(inSpread && own.spread === 0, inBurst && own.burst === 0)
  own.add(inSpread, inBurst)
}

/** Visits each name of two lists once. */
export function eachName(
  spread: readonly string[],
  burst: readonly string[],
  visit: (name: string, inSpread: boolean, inBurst: boolean) => void,
): void {
  for (const name of spread) visit(name, true, burst === spread || burst.includes(name))
  if (burst === spread) return
  for (const name of burst) if (!spread.includes(name)) visit(name, false, true)
}

/** The pair of a key; a new one if there is none. */
export function pairOf<K>(pairs: Map<K, Pair>, key: K): Pair {
  let pair = pairs.get(key)
  if (!pair) {
    pair = new Pair()
    pairs.set(key, pair)
  }
  return pair
}

/** Sorts the highest counts first. */
export const byHighest = <T>(items: Iterable<T>, pair: (item: T) => Pair): T[] =>
  [...items].sort((a, b) => pair(b).high - pair(a).high || pair(b).low - pair(a).low)
