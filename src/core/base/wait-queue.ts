import { withResolvers } from './with-resolvers.ts'

export type Waiter<Item, Answer> = Item & {
  /** Resolves `answered`. Only the first answer counts. */
  answer: (value: Answer) => void
  /** The answer, or `undefined` after the wait has expired. */
  answered: Promise<Answer | undefined>
}

/**
 * Requests that wait for an answer from another request. On Workers a request must not await a promise of another request: this fails under
 * load. So each has its own promise and timer, and other requests only pass plain values.
 */
export class WaitQueue<Item, Answer> extends Set<Waiter<Item, Answer>> {
  /** @param waitMs longest wait, after which the item leaves without an answer. Its timer keeps the runtime from cancelling the request. */
  join(item: Item, waitMs: number): Waiter<Item, Answer> {
    const { promise, resolve } = withResolvers<Answer | undefined>()
    const timer = setTimeout(() => {
      this.delete(waiter)
      resolve(undefined)
    }, waitMs)
    const answered = promise.finally(() => clearTimeout(timer))
    const waiter = { ...item, answer: resolve, answered }
    this.add(waiter)
    return waiter
  }
}
