/** Virtual time: what is to happen, in order. */

/** What the rest of the process knew as its timers. */
const real = { setImmediate: globalThis.setImmediate }

/** What happens within so many ms counts as at once: what follows from it sees the end of them. */
const QUANTUM_MS = 0.05

export interface VirtualTime {
  /** ms since the epoch, with a fraction. */
  now(): number
  /** Does something at a time that is not past. Time stands still until what it returns has settled. */
  at(time: number, what: () => unknown): unknown
  /** Resolves so many ms later. */
  wait(ms: number): Promise<void>
  /** Lets all happen, in order, until nothing more is to come before `until`. */
  run(until: number): Promise<void>
  /** Gives the process its own clock and timers back. */
  end(): void
}

/**
 * Puts the process on a virtual clock: `Date.now` and the timers of whatever runs in it, so that the code under test is the
 * code that is deployed. What is awaited of the outside (a Redis) is awaited in no time at all.
 */
export function startVirtualTime(start: number): VirtualTime {
  const before = {
    now: Date.now,
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
  }
  const heap = createHeap()
  let now = start
  let timers = 0
  const waiting = new Map<number, Event>()
  const at = (time: number, what: () => unknown) => heap.push({ time: Math.max(time, now), what })
  const nothing = () => {}

  Date.now = () => Math.floor(now)
  globalThis.setTimeout = ((what: () => void, ms = 0) => {
    const id = ++timers
    waiting.set(
      id,
      at(now + ms, () => {
        waiting.delete(id)
        what()
      }),
    )
    return id
  }) as never
  globalThis.clearTimeout = ((id: number) => {
    const event = waiting.get(id)
    waiting.delete(id)
    if (event) event.what = nothing // its place in the heap stays, what it holds on to does not
  }) as never

  return {
    now: () => now,
    at,
    wait: (ms) => new Promise((resolve) => at(now + ms, resolve)),
    async run(until) {
      for (let next = heap.peek(); next && next.time < until; next = heap.peek()) {
        const ends = Math.min(until, next.time + QUANTUM_MS)
        const awaited: unknown[] = []
        for (let one = heap.peek(); one && one.time < ends; one = heap.peek()) {
          heap.pop()
          now = one.time
          awaited.push(one.what())
        }
        await Promise.all(awaited)
        // Whatever follows from them without a wait happens at the same moment.
        await new Promise((resolve) => real.setImmediate(resolve as () => void))
      }
      now = until
    },
    end() {
      Date.now = before.now
      globalThis.setTimeout = before.setTimeout
      globalThis.clearTimeout = before.clearTimeout
    },
  }
}

interface Event {
  time: number
  what: () => unknown
  /** Of two at the same time the first that was told comes first. */
  order?: number
}

/** A binary heap, the earliest first. */
function createHeap() {
  const events: Required<Event>[] = []
  let pushed = 0
  const before = (a: Required<Event>, b: Required<Event>) =>
    a.time < b.time || (a.time === b.time && a.order < b.order)
  return {
    peek: (): Event | undefined => events[0],
    push({ time, what }: Event): Event {
      const event = { time, what, order: pushed++ }
      let place = events.push(event) - 1
      while (place > 0) {
        const parent = (place - 1) >> 1
        if (!before(event, events[parent]!)) break
        events[place] = events[parent]!
        place = parent
      }
      events[place] = event
      return event
    },
    pop() {
      const last = events.pop()
      if (!last || events.length === 0) return
      let place = 0
      for (;;) {
        let child = 2 * place + 1
        if (child >= events.length) break
        if (child + 1 < events.length && before(events[child + 1]!, events[child]!)) child += 1
        if (!before(events[child]!, last)) break
        events[place] = events[child]!
        place = child
      }
      events[place] = last
    },
  }
}
