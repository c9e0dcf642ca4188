/** The time of a simulation: the clock and the timers of this thread, which the traffic moves. */

/** A timer that has not run. */
interface Timer {
  /** ms since the epoch */
  at: number
  run(): void
}

export interface OwnTime {
  set(ms: number): void
  /** When the next timer runs, ms since the epoch; infinite without one. */
  nextTimer(): number
  /** Runs the next timer, at its time. */
  runTimer(): void
  /** Waits until each of the tasks that are not done has set a timer. */
  idle(): Promise<void>
  /** Adds a task, which sets one timer at a time. */
  begin(task: Promise<unknown>): void
}

/** Longer than any pause of the browser: a decision has a time of the traffic, and no time of the machine. */
export const DEADLINE = '20d'
const DEADLINE_MS = 20 * 86_400_000

/**
 * Runs a task while `Date.now()` and `setTimeout` have a time of their own. A timer runs when the task runs it, and the timer of a deadline
 * never. Nothing else may run meanwhile: the playground does this in a worker of its own.
 */
export async function atOwnTime<T>(task: (time: OwnTime) => Promise<T>): Promise<T> {
  const { setTimeout, clearTimeout } = globalThis
  const { now } = Date
  let time = now()
  const timers = new Set<Timer>()
  let tasks = 0
  let changed = () => {}
  const next = () => [...timers].reduce((one, other) => (other.at < one.at ? other : one), NEVER)
  Date.now = () => time
  globalThis.setTimeout = ((run: () => void, ms: number) => {
    if (ms >= DEADLINE_MS) return undefined
    const timer = { at: time + ms, run }
    timers.add(timer)
    changed()
    return timer
  }) as never
  globalThis.clearTimeout = ((timer: Timer) => void timers.delete(timer)) as never
  try {
    return await task({
      set(ms) {
        time = ms
      },
      nextTimer: () => next().at,
      runTimer() {
        const timer = next()
        timers.delete(timer)
        time = timer.at
        timer.run()
      },
      async idle() {
        while (timers.size < tasks) {
          await new Promise<void>((resolve) => {
            changed = resolve
          })
        }
      },
      begin(one) {
        tasks += 1
        const done = () => {
          tasks -= 1
          changed()
        }
        one.then(done, done)
      },
    })
  } finally {
    Date.now = now
    Object.assign(globalThis, { setTimeout, clearTimeout })
  }
}

const NEVER: Timer = { at: Number.POSITIVE_INFINITY, run: () => {} }
