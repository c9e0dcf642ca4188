/** The most verified requests of one isolate in a minute. A check of ten policies needs about 200. */
const PER_MINUTE = 2_000

/** Limits verified requests, so that a stolen token cannot fill the database with counters. Above the limit the field has no effect. */
export function createAllowance() {
  let minute = 0
  let left = 0
  return {
    /** @param now ms since the epoch */
    takes(now: number): boolean {
      const current = Math.floor(now / 60_000)
      if (current !== minute) [minute, left] = [current, PER_MINUTE]
      left -= 1
      return left >= 0
    },
  }
}
