/** An item whose request waits for an answer. */
export type Waiter<Item, Answer> = Item & {
  /** Lets the request go on. Only the first answer counts. */
  answer: (value: Answer) => void
  /** The answer; `undefined` if none came in time. */
  answered: Promise<Answer | undefined>
}

/**
 * Requests that other requests answer. On Workers a request must not await a promise that another one made: under load that fails.
 * So each has a promise and a timer of its own, and only plain values cross.
 */
export class WaitQueue<Item, Answer> extends Set<Waiter<Item, Answer>> {
  /**
   * @param waitMs until it leaves the queue without an answer. The timer also keeps the runtime from cancelling the request as hung;
   * omit it only if the request has another one.
   */
  join(item: Item, waitMs?: number): Waiter<Item, Answer> {
    const { promise, resolve } = Promise.withResolvers<Answer | undefined>()
    const timer =
      waitMs === undefined
        ? undefined
        : setTimeout(() => {
            this.delete(waiter)
            resolve(undefined)
          }, waitMs)
    const answered = timer === undefined ? promise : promise.finally(() => clearTimeout(timer))
    const waiter = { ...item, answer: resolve, answered }
    this.add(waiter)
    return waiter
  }
}
