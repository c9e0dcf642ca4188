/** The clock of one test stack: the clock of this machine plus an offset that only grows. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Duration, parseDuration } from '../core/base/duration.ts'

const realNow = Date.now

/** The latest time in ms that the script accepts (lua/README.md). */
const MAX_MS = 2 ** 51

export class TestClock {
  offsetMs = 0

  /** ms since the epoch */
  now(): number {
    return realNow() + this.offsetMs
  }

  /** @throws RangeError if the duration is invalid, since a clock that moves back would make windows and bans last longer */
  advance(duration: Duration): void {
    const ms = parseDuration(duration)
    if (ms === undefined || this.now() + ms > MAX_MS) {
      const got = typeof duration === 'string' ? JSON.stringify(duration) : String(duration)
      throw new RangeError(
        `advance: expected a duration such as '1h', or a whole number of milliseconds of at least 1, got ${got}. The clock cannot move backwards.`,
      )
    }
    this.offsetMs += ms
  }
}

const current = new AsyncLocalStorage<TestClock>()

/** Runs `work` by this clock, with everything that it starts. Needs `replaceDate`. */
export const runBy = <Result>(clock: TestClock, work: () => Result): Result =>
  current.run(clock, work)

let replacements = 0
let restore = () => {}

/**
 * Replaces `Date` in this process. `Date.now()` and `new Date()` follow the clock of `runBy`, so that several stacks have independent
 * clocks; elsewhere they do not change.
 * @returns a function that restores `Date`, once all replacements are undone
 */
export function replaceDate(): () => void {
  if (replacements++ === 0) restore = install()
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    if (--replacements === 0) restore()
  }
}

function install(): () => void {
  const Real = globalThis.Date
  const now = () => current.getStore()?.now() ?? Real.now()
  const replaced = new Proxy(Real, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length > 0 ? args : [now()], newTarget),
    apply: () => new Real(now()).toString(),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  })
  globalThis.Date = replaced
  return () => {
    if (globalThis.Date === replaced) globalThis.Date = Real
  }
}
