/** The calls of this isolate that wait for a slot of a limit, in order. Only the first one asks the store, so a long queue costs no more. */
import { withResolvers } from '../core/base/with-resolvers.ts'
import type { Limit } from '../core/connection/store.ts'
import { atTime, type LineMember, Lines } from '../features/turns/lines.ts'

/** How long the first call waits before it asks again, ms: at first, and at most. */
const FIRST_MS = 50
const MOST_MS = 500
/** So often a call looks whether it is the first one, ms: the runtime may have cancelled those before it. */
const LOOK_MS = 1_000

interface WaitingCall extends LineMember {
  wake: () => void
}

export class SlotQueues {
  readonly #queues = new Lines<WaitingCall>()
  #calls = 0

  waiting(limit: Limit): number {
    return this.#queues.of(nameOf(limit)).length
  }

  join(limit: Limit, untilMs: number, signal: AbortSignal | undefined) {
    const queues = this.#queues
    const name = nameOf(limit)
    const own: WaitingCall = { number: ++this.#calls, names: [name], goneAt: 0, wake: () => {} }
    const isFirst = () => queues.of(name)[0] === own
    const live = () => {
      const life = atTime(own, untilMs, () => {
        if (Date.now() < untilMs) end = live()
      })
      queues.join(own)
      return life.cancel
    }
    let end = live()
    let pauseMs = FIRST_MS
    return {
      /** Resolves when the call should ask the store: when it is the first one, after a pause or a release, or when its signal aborts. */
      async next() {
        const { promise, resolve } = withResolvers<void>()
        const look = (ms: number) => {
          timer = setTimeout(
            () => (isFirst() || Date.now() >= untilMs ? resolve() : look(LOOK_MS)),
            Math.max(1, Math.min(ms, untilMs - Date.now())),
          )
        }
        let timer: ReturnType<typeof setTimeout>
        const done = () => resolve()
        signal?.addEventListener('abort', done)
        own.wake = done
        look(isFirst() ? pauseMs : LOOK_MS)
        pauseMs = Math.min(MOST_MS, pauseMs * 1.5)
        await promise
        clearTimeout(timer!)
        signal?.removeEventListener('abort', done)
        own.wake = () => {}
      },
      leave() {
        end()
        const wasFirst = isFirst()
        queues.leave(own)
        if (wasFirst) queues.of(name)[0]?.wake()
      },
    }
  }

  /** A slot of a limit may be free: the first call asks at once. */
  wake(limit: Limit): void {
    this.#queues.of(nameOf(limit))[0]?.wake()
  }
}

const nameOf = ({ subject, terms: { tag } }: Limit) => `${tag} ${subject}`
