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
  /** Also goes on if the request is cancelled, as the network does. */
  sleep: (ms: number) => Promise<void>
  /** Runs a task whose clock, and that of all that it starts, is ahead by this many ms. */
  ahead: <T>(ms: number, task: () => T) => T
  /** Runs what is due until this time, ms from now. Defaults to all timers that there are. */
  pass: (ms?: number) => Promise<void>
  /** Keeps the time still while a task of another thread runs. */
  during: <T>(task: Promise<T>) => Promise<T>
}

/** The request that the code belongs to which runs now. */
const requests = new AsyncLocalStorage<{ isCancelled: boolean }>()

/**
 * Runs the code of a request that the runtime may cancel, as workerd does if the client goes: its timers and its promises that others settle do
 * not continue, and no `finally` runs. The promises are those of `Promise.withResolvers`.
 */
export function cancellable<T>(task: () => T): { result: T; cancel: () => void } {
  const request = { isCancelled: false }
  return {
    result: requests.run(request, task),
    cancel: () => {
      request.isCancelled = true
    },
  }
}

class RequestPromise<T> extends Promise<T> {
  // biome-ignore lint/suspicious/noThenProperty: `await` calls it, so that it may stop
  override then<R, E>(onValue?: Then<T, R>, onError?: Then<unknown, E>): Promise<R | E> {
    const request = requests.getStore()
    const unlessCancelled = <V, W>(run: Then<V, W>): Then<V, W> =>
      run && ((value) => (request?.isCancelled ? new Promise<W>(() => {}) : run(value)))
    return super.then(unlessCancelled(onValue), unlessCancelled(onError)) as Promise<R | E>
  }
}
type Then<V, R> = ((value: V) => R | PromiseLike<R>) | null | undefined

function resolversOfRequests<T>() {
  let resolve!: (value: T | PromiseLike<T>) => void
  let reject!: (reason: unknown) => void
  const promise = new RequestPromise<T>((...settle) => {
    ;[resolve, reject] = settle
  })
  return { promise, resolve, reject }
}

/** Runs a task at a time of its own. Nothing else may run meanwhile. */
export async function inVirtualTime<T>(task: (time: VirtualTime) => Promise<T>): Promise<T> {
  const { setTimeout, clearTimeout, setImmediate } = globalThis
  const { withResolvers } = Promise
  const realNow = Date.now
  const skew = new AsyncLocalStorage<number>()
  const timers = new Set<Timer>()
  let time = 1_789_000_000_000
  let busy = 0
  Date.now = () => time + (skew.getStore() ?? 0)
  globalThis.setTimeout = ((run: () => void, ms = 0) => {
    const unlessCancelled = () => requests.getStore()?.isCancelled || run()
    const timer = {
      at: time + Math.max(1, Math.trunc(ms)),
      run: AsyncLocalStorage.bind(unlessCancelled),
    }
    timers.add(timer)
    return timer
  }) as never
  Promise.withResolvers = resolversOfRequests
  globalThis.clearTimeout = ((timer: Timer) => void timers.delete(timer)) as never
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  async function settle() {
    // What starts after a digest may itself take a turn.
    do for (let turns = 0; turns < 2; turns += 1) await turn()
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
      sleep: (ms) =>
        new Promise((resolve) => requests.exit(() => void globalThis.setTimeout(resolve, ms))),
      ahead: (ms, task) => skew.run(ms, task),
      pass,
      during,
    })
  } finally {
    Date.now = realNow
    Object.assign(globalThis, { setTimeout, clearTimeout })
    Promise.withResolvers = withResolvers
  }
}
