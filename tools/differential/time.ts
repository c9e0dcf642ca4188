/**
 * Virtual time. Timers run by it one after the other, as soon as nothing else is left to do, so that two runs of the same requests have
 * the same order of events however busy the machine is, and waiting costs nothing.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

const real = {
  setTimeout,
  clearTimeout,
  setImmediate,
  now: Date.now,
}
/** After so many turns of the event loop a chain of promises has ended, or waits for a timer or for something outside. */
const TURNS = 20

interface Timer {
  at: number
  run: () => void
}

export class VirtualTime {
  now: number
  /** In the order in which they run. */
  #timers: Timer[] = []
  /** What is being done outside of this time, such as a call to Redis. */
  readonly #outside = new Set<Promise<unknown>>()

  constructor(now: number) {
    this.now = now
  }

  start(run: () => void, ms: number): Timer {
    const timer = { at: this.now + Math.max(0, ms), run }
    const later = this.#timers.findIndex(({ at }) => at > timer.at)
    this.#timers.splice(later < 0 ? this.#timers.length : later, 0, timer)
    return timer
  }

  stop(timer: unknown) {
    this.#timers = this.#timers.filter((one) => one !== timer)
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.start(resolve, ms))
  }

  /** Does something by the real time, while this time stands still. */
  async outside<T>(work: () => Promise<T>): Promise<T> {
    const working = current.exit(work)
    this.#outside.add(working)
    return working.finally(() => this.#outside.delete(working))
  }

  /** Lets time pass until a promise has settled. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const settle = () => {
      isSettled = true
    }
    promise.then(settle, settle)
    while (true) {
      for (let turn = 0; turn < TURNS; turn += 1) {
        await new Promise((resolve) => real.setImmediate(resolve))
      }
      if (this.#outside.size > 0) await Promise.race(this.#outside).catch(() => {})
      else if (isSettled) return promise
      else this.#next()
    }
  }

  #next() {
    const timer = this.#timers.shift()
    if (!timer) throw new Error('a request waits for nothing')
    this.now = timer.at
    current.run(this, timer.run)
  }
}

const current = new AsyncLocalStorage<VirtualTime>()

/** Runs `work` by a virtual time, with everything that it starts, until its promise has settled. */
export const runBy = <T>(time: VirtualTime, work: () => Promise<T>): Promise<T> =>
  time.until(current.run(time, work))

/** Replaces clock, timers and hashes of this process for the code that {@link runBy} runs. */
export function replaceTime(): void {
  Date.now = () => current.getStore()?.now ?? real.now()
  const replaced = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
    const time = current.getStore()
    return time ? time.start(() => run(...args), ms) : real.setTimeout(run, ms, ...args)
  }
  globalThis.setTimeout = Object.assign(replaced, real.setTimeout) as unknown as typeof setTimeout
  globalThis.clearTimeout = ((timer: NodeJS.Timeout | undefined) => {
    current.getStore()?.stop(timer)
    real.clearTimeout(timer)
  }) as typeof clearTimeout
  AbortSignal.timeout = (ms) => {
    const abort = new AbortController()
    setTimeout(() => abort.abort(new DOMException('too late', 'TimeoutError')), ms)
    return abort.signal
  }
  // Threads compute them, in any order.
  for (const name of ['digest', 'sign', 'verify', 'importKey'] as const) {
    const compute = crypto.subtle[name].bind(crypto.subtle) as (
      ...args: unknown[]
    ) => Promise<never>
    let last: Promise<unknown> = Promise.resolve()
    crypto.subtle[name] = (...args: unknown[]) => {
      const time = current.getStore()
      if (!time) return compute(...args)
      const computed = time.outside(() => last.then(() => compute(...args)))
      last = computed.catch(() => {})
      return computed
    }
  }
}
