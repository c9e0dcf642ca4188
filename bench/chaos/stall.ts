import { setTimeout as sleep } from 'node:timers/promises'

const PAUSE_MS = 5
/** What a control request may take before the machine counts as standing still. */
const ORDINARY_MS = 10

export interface StallMeter {
  /** For how many ms at most something stood still between two moments of `performance.now()`. */
  between(start: number, end: number): Promise<number>
  stop(): Promise<void>
}

/**
 * Measures how long the machine, not the limiter, keeps requests waiting. A control request goes out without end, one at a
 * time, to a path of the same Worker that meets no policy: the same client, the same event loops, workerd and origin, and
 * no Redis. Whatever stops one of these (a garbage collection, another process on the core) stops the control as well, so what it takes
 * beyond ten milliseconds is no doing of a fault. Delays add up along the way of a request, so all that fall into its time are summed.
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
        .catch(() => {}) // which took its time all the same
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
          // No more of one than the part that lies between the two moments.
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
