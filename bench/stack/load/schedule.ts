import { gapMs } from '../../random.ts'

/** Times from 0 to `ms` at which requests of a Poisson process come: independent of each other and of the answers. */
export function poisson(rate: number, ms: number, random: () => number = Math.random): number[] {
  const times: number[] = []
  let at = gapMs(rate, random)
  while (at < ms) {
    times.push(at)
    at += gapMs(rate, random)
  }
  return times
}
