/** A request that has ended without notice is known to have gone so long after its turn, ms. */
const GONE_MS = 1_000

/** The room for requests that wait in one isolate. */
export interface WaitingRoom {
  isFull(): boolean
  /** @returns a function for the end of the wait */
  enter(untilMs: number): () => void
}

/** @param most the most requests that wait at a time */
export function createRoom(most: number): WaitingRoom {
  // A runtime that cancels a request does not run the end of its wait.
  const waiting = new Set<{ untilMs: number }>()
  return {
    isFull() {
      if (waiting.size < most) return false
      const now = Date.now()
      for (const one of waiting) if (one.untilMs + GONE_MS < now) waiting.delete(one)
      return waiting.size >= most
    },
    enter(untilMs) {
      const one = { untilMs }
      waiting.add(one)
      return () => void waiting.delete(one)
    },
  }
}
