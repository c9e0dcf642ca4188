import { gapMs } from '../../random.ts'

/** The times of a Poisson process from 0 to `ms`: random, and independent of each other and of the responses. */
export function poisson(rate: number, ms: number, random: () => number = Math.random): number[] {
  const times: number[] = []
  let at = gapMs(rate, random)
  while (at < ms) {
    times.push(at)
    at += gapMs(rate, random)
  }
  return times
}
