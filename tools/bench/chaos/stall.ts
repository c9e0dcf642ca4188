import { setTimeout as sleep } from 'node:timers/promises'

const PAUSE_MS = 5
/** Maximum duration of a control request in ms before the machine counts as stalled. */
const ORDINARY_MS = 10

export interface StallMeter {
  /** Upper bound of the stalled time in ms between two times of `performance.now()`. */
  between(start: number, end: number): Promise<number>
  stop(): Promise<void>
}

/**
 * Measures how long the machine, and not the limiter, delays requests. Sends control requests, one at a time, to a path of the same
 * Worker to which no policy applies: they use the same client, event loops, workerd and origin, but no Redis. A garbage collection or
 * another process on the core delays them as well, so their time beyond 10 ms is not caused by a fault. A request may meet several
 * such delays, so all that fall into its time are summed.
 */
export function watchStall(url: string): StallMeter {
  const stalls: { start: number; end: number; ms: number }[] = []
  let seenUntil = performance.now()
  let stopped = false

  async function watch() {
    while (!stopped) {
      const start = seenUntil
      await sleep(PAUSE_MS)
      await fetch(url, { signal: AbortSignal.timeout(10_000) })
        .then((response) => response.arrayBuffer())
        .catch(() => {}) // a failed request takes time as well
      const end = performance.now()
      const ms = end - start - PAUSE_MS - ORDINARY_MS
      if (ms > 0) stalls.push({ start, end, ms })
      seenUntil = end
    }
  }
  const done = watch()

  return {
    async between(start, end) {
      while (seenUntil < end && !stopped) await sleep(PAUSE_MS)
      return (
        stalls
          .filter((stall) => stall.start < end && stall.end > start)
          // Counts only the part of a stall between the two times.
          .reduce(
            (sum, stall) =>
              sum + Math.min(stall.ms, Math.min(stall.end, end) - Math.max(stall.start, start)),
            0,
          )
      )
    },
    async stop() {
      stopped = true
      await done
    },
  }
}
