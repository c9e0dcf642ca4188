import { withResolvers } from '../../core/base/with-resolvers.ts'

/** A request that has ended without notice is known to have gone so long after it could have waited, ms. */
const GONE_MS = 1_000

/** A request that sleeps until its turn. */
interface Sleeper {
  /** The number of the request in the isolate. */
  number: number
  /** ms since the epoch */
  until: number
  subjects: readonly string[]
  wake: () => void
}

/** The place of a request in the room. */
export interface Guest {
  /** True if the room had no place for it. */
  isFull: boolean
  /**
   * Sleeps until the turn, or until units come back for these subjects.
   * @param closed resolves or rejects when the client has gone
   * @returns false if the client has gone
   */
  sleep(
    ms: number,
    subjects: readonly string[],
    closed: Promise<unknown> | undefined,
  ): Promise<boolean>
  leave(): void
}

/** The requests of one isolate that may wait. A request is in the room from its first call of the store on. */
export interface WaitingRoom {
  /** The number of requests in the room. */
  readonly size: number
  /** @param mostMs the longest time for which the request may wait */
  enter(mostMs: number): Guest
  /** Wakes the first request of each subject: units have come back. */
  wake(subjects: Iterable<string>): void
}

/** @param most the most requests that may wait at a time */
export function createRoom(most: number): WaitingRoom {
  // A runtime that cancels a request does not run the end of its wait.
  const guests = new Set<{ until: number }>()
  const sleepers = new Set<Sleeper>()
  let number = 0

  function isFull(now: number): boolean {
    if (guests.size < most) return false
    for (const one of guests) if (one.until < now) guests.delete(one)
    return guests.size >= most
  }

  /** Wakes a sleeper, and with it all others whose turn it is, in the order in which they came. */
  function ring(sleeper: Sleeper) {
    const now = Date.now()
    const due = [...sleepers].filter((one) => one === sleeper || one.until <= now)
    for (const one of due.sort((one, other) => one.number - other.number)) one.wake()
  }

  return {
    get size() {
      return guests.size
    },
    enter(mostMs) {
      const now = Date.now()
      const guest = { until: now + mostMs + GONE_MS }
      const full = isFull(now)
      if (!full) guests.add(guest)
      const own = ++number
      return {
        isFull: full,
        leave: () => void guests.delete(guest),
        sleep(ms, subjects, closed) {
          const { promise, resolve } = withResolvers<boolean>()
          // A timer may fire up to one ms early.
          const timer = setTimeout(() => ring(sleeper), ms + 1)
          const end = (isStill: boolean) => {
            clearTimeout(timer)
            sleepers.delete(sleeper)
            resolve(isStill)
          }
          const sleeper: Sleeper = {
            number: own,
            until: Date.now() + ms,
            subjects,
            wake: () => end(true),
          }
          sleepers.add(sleeper)
          const gone = () => end(false)
          closed?.then(gone, gone)
          return promise
        },
      }
    },
    wake(subjects) {
      for (const subject of subjects) {
        let first: Sleeper | undefined
        for (const one of sleepers) {
          if (one.subjects.includes(subject) && (!first || one.number < first.number)) first = one
        }
        first?.wake()
      }
    },
  }
}
