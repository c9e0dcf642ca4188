/** Numbers from 0 to 1, evenly, the same for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** ms until the next of events that come at random (a Poisson process), so many a second. 1 − random is never 0, whose logarithm is not a time. */
export const gapMs = (rate: number, random: () => number): number =>
  (-Math.log(1 - random()) * 1000) / rate
