/** Times from 0 to `ms` at which requests of a Poisson process come: independent of each other and of the answers. */
export function poisson(rate: number, ms: number, random: () => number = Math.random): number[] {
  const times: number[] = []
  const meanMs = 1000 / rate
  // 1 − random is never 0, whose logarithm is not a time.
  let at = -Math.log(1 - random()) * meanMs
  while (at < ms) {
    times.push(at)
    at -= Math.log(1 - random()) * meanMs
  }
  return times
}
