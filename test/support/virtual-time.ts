/** The clock and the timers of this process at a time of their own: a schedule of minutes takes milliseconds. */
import { AsyncLocalStorage } from 'node:async_hooks'

interface Timer {
  /** ms since the epoch */
  at: number
  run: () => void
}

export interface VirtualTime {
  /** The time without any skew, ms since the epoch. */
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Runs a task whose clock, and that of all that it starts, is ahead by this many ms. */
  ahead: <T>(ms: number, task: () => T) => T
  /** Runs what is due until this time, ms from now. Defaults to all timers that there are. */
  pass: (ms?: number) => Promise<void>
  /** Keeps the time still while a task of another thread runs. */
  during: <T>(task: Promise<T>) => Promise<T>
}

/** Runs a task at a time of its own. Nothing else may run meanwhile. */
export async function inVirtualTime<T>(task: (time: VirtualTime) => Promise<T>): Promise<T> {
  const { setTimeout, clearTimeout, setImmediate } = globalThis
  const realNow = Date.now
  const skew = new AsyncLocalStorage<number>()
  const timers = new Set<Timer>()
  let time = 1_789_000_000_000
  let busy = 0
  Date.now = () => time + (skew.getStore() ?? 0)
  globalThis.setTimeout = ((run: () => void, ms = 0) => {
    const timer = { at: time + Math.max(1, Math.trunc(ms)), run: AsyncLocalStorage.bind(run) }
    timers.add(timer)
    return timer
  }) as never
  globalThis.clearTimeout = ((timer: Timer) => void timers.delete(timer)) as never
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  async function settle() {
    do await turn()
    while (busy > 0)
  }
  async function during<R>(task: Promise<R>) {
    busy += 1
    try {
      return await task
    } finally {
      busy -= 1
    }
  }
  async function pass(ms = Number.POSITIVE_INFINITY) {
    const end = time + ms
    for (;;) {
      await settle()
      let next: Timer | undefined
      for (const timer of timers) if (!next || timer.at < next.at) next = timer
      if (!next || next.at > end) break
      timers.delete(next)
      time = Math.max(time, next.at)
      next.run()
    }
    if (ms < Number.POSITIVE_INFINITY) time = end
  }
  try {
    return await task({
      now: () => time,
      sleep: (ms) => new Promise((resolve) => void globalThis.setTimeout(resolve, ms)),
      ahead: (ms, task) => skew.run(ms, task),
      pass,
      during,
    })
  } finally {
    Date.now = realNow
    Object.assign(globalThis, { setTimeout, clearTimeout })
  }
}
