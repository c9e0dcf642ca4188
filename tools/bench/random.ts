/** Creates a generator of uniform random numbers from 0 to 1. The same seed gives the same numbers (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Time in ms to the next event of a Poisson process with `rate` events per second. 1 − random avoids the logarithm of 0. */
export const gapMs = (rate: number, random: () => number): number =>
  (-Math.log(1 - random()) * 1000) / rate
