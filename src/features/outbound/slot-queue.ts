/** The calls of this isolate that wait for a slot, in order. Only the first one asks the store again, so that a long queue costs no more calls. */

import { withResolvers } from '../../core/base/with-resolvers.ts'

/** How long the first call waits before it asks again, ms: at first, and at most. */
const FIRST_MS = 50
const MOST_MS = 500

export interface QueuedCall {
  /** Resolves when the call should ask the store: when it is the first one, after a pause or a release, or when its signal aborts. */
  next(): Promise<void>
  leave(): void
}

export class SlotQueue {
  readonly #calls: { wake: () => void }[] = []

  join(untilMs: number, signal: AbortSignal | undefined): QueuedCall {
    const own = { wake: () => {} }
    this.#calls.push(own)
    let pauseMs = FIRST_MS
    return {
      next: () => {
        const { promise, resolve } = withResolvers<void>()
        // The calls behind the first one wait for their end at most.
        const restMs = Math.max(1, untilMs - Date.now())
        const isFirst = this.#calls[0] === own
        const done = () => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', done)
          own.wake = () => {}
          resolve()
        }
        const timer = setTimeout(done, isFirst ? Math.min(pauseMs, restMs) : restMs)
        pauseMs = Math.min(MOST_MS, pauseMs * 1.5)
        signal?.addEventListener('abort', done)
        own.wake = done
        return promise
      },
      leave: () => {
        const index = this.#calls.indexOf(own)
        if (index >= 0) this.#calls.splice(index, 1)
        if (index === 0) this.wake()
      },
    }
  }

  /** A slot may be free: the first call asks at once. */
  wake(): void {
    this.#calls[0]?.wake()
  }
}
