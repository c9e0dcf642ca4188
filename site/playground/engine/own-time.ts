/** The time of a simulation: the clock and the timers of this thread, which the traffic moves. */

/** A timer that has not run. */
export interface Timer {
  /** ms since the epoch */
  at: number
  run(): void
}

export interface OwnTime {
  set(ms: number): void
  /** Resolves to the next timer that code sets. */
  nextTimer(): Promise<Timer>
}

/** Longer than any pause of the browser: a decision has a time of the traffic, and no time of the machine. */
export const DEADLINE = '20d'
const DEADLINE_MS = 20 * 86_400_000

/**
 * Runs a task while `Date.now()` and `setTimeout` have a time of their own. A timer runs when the task runs it, and the timer of a deadline
 * never. Nothing else may run meanwhile: the playground does this in a worker of its own.
 */
export async function atOwnTime<T>(task: (time: OwnTime) => Promise<T>): Promise<T> {
  const { setTimeout } = globalThis
  const { now } = Date
  let time = now()
  let isSet = (_: Timer) => {}
  Date.now = () => time
  globalThis.setTimeout = ((run: () => void, ms: number) => {
    if (ms < DEADLINE_MS) isSet({ at: time + ms, run })
  }) as typeof setTimeout
  try {
    return await task({
      set(ms) {
        time = ms
      },
      nextTimer: () =>
        new Promise((resolve) => {
          isSet = resolve
        }),
    })
  } finally {
    Date.now = now
    globalThis.setTimeout = setTimeout
  }
}
