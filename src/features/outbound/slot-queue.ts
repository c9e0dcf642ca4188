/**
 * The calls of this isolate that wait for a slot, in order, for each limit of each subject. Only the first one asks the store again, so that a
 * long queue costs no more calls.
 */
import { withResolvers } from '../../core/base/with-resolvers.ts'
import type { Limit } from '../../core/connection/store.ts'

/** How long the first call waits before it asks again, ms: at first, and at most. */
const FIRST_MS = 50
const MOST_MS = 500

export interface QueuedCall {
  /** Resolves when the call should ask the store: when it is the first one, after a pause or a release, or when its signal aborts. */
  next(): Promise<void>
  leave(): void
}

export class SlotQueues {
  readonly #queues = new Map<string, { wake: () => void }[]>()

  /** The number of calls that wait for a slot of a limit. */
  waiting(limit: Limit): number {
    return this.#queues.get(nameOf(limit))?.length ?? 0
  }

  join(limit: Limit, untilMs: number, signal: AbortSignal | undefined): QueuedCall {
    const name = nameOf(limit)
    const queue = this.#queues.get(name) ?? []
    const own = { wake: () => {} }
    queue.push(own)
    this.#queues.set(name, queue)
    let pauseMs = FIRST_MS
    return {
      next: () => {
        const { promise, resolve } = withResolvers<void>()
        // The calls behind the first one wait for their end at most.
        const restMs = Math.max(1, untilMs - Date.now())
        const isFirst = queue[0] === own
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
        const index = queue.indexOf(own)
        if (index >= 0) queue.splice(index, 1)
        if (index === 0) queue[0]?.wake()
        if (queue.length === 0) this.#queues.delete(name)
      },
    }
  }

  /** A slot of a limit may be free: the first call asks at once. */
  wake(limit: Limit): void {
    this.#queues.get(nameOf(limit))?.[0]?.wake()
  }
}

const nameOf = ({ subject, terms: { tag } }: Limit) => `${tag} ${subject}`
