/** Virtual time: a queue of events in the order of their times. */

/** The real timers of the process. */
const real = { setImmediate: globalThis.setImmediate }

/** Events within this time in ms count as simultaneous. Their follow-up code runs at the time of the last of them. */
const QUANTUM_MS = 0.05

export interface VirtualTime {
  /** The virtual time in ms since the epoch, with a fraction. */
  now(): number
  /** Schedules an event. Time stops until the promise that `what` returns has settled. */
  at(time: number, what: () => unknown): unknown
  /** Resolves after this virtual time in ms. */
  wait(ms: number): Promise<void>
  /** Runs all events before `until`, in order. */
  run(until: number): Promise<void>
  /** Restores the real clock and timers of the process. */
  end(): void
}

/**
 * Replaces `Date.now` and the timers of the process by a virtual clock, so that the deployed code can run in virtual time. Waiting
 * for the outside (a Redis) takes no virtual time.
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
    if (event) event.what = nothing // the event stays in the heap, but no longer references the callback
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
        // Lets follow-up code that does not wait run at the same virtual time.
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
  /** Orders events of the same time: first scheduled, first run. */
  order?: number
}

/** A binary heap with the earliest event first. */
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
