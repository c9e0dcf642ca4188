/** Bounds how long a caller waits for the store. The call itself may run longer, so that its late reply can be used. */
import { isLate, systemClock } from '../base/clock.ts'
import { asStoreError, StoreError } from '../base/errors.ts'
import { withResolvers } from '../base/with-resolvers.ts'
import type { Store, StoreOptions, StoreResult } from './store.ts'

/** How long a call may run after its caller has stopped waiting, ms. */
const MAX_LATE_MS = 5_000
/** Extra time for a request to receive the late reply, ms: another request may have sent the call and must pass the reply on. */
const MARGIN_MS = 1_000
const DEADLINE_MS = 300

/**
 * A store that answers within the caller's deadline. Defaults to 300 ms.
 *
 * After the deadline the call runs for up to five more seconds. The error `timeout` has its late reply (`StoreError.late`), so that the
 * caller can learn the states and refund the charges.
 *
 * A busy isolate runs overdue timers before it reads replies that have already arrived. A timer that fires late therefore waits once
 * more: as long as its delay, at most as long as the deadline.
 */
export function withDeadline(store: Store, clock: () => number = systemClock): Store {
  /** Resolves with the reply, or with `undefined` at the deadline. */
  function inTime<Result>(reply: Promise<Result>, waitMs: number): Promise<Result | undefined> {
    const { promise, resolve } = withResolvers<Result | undefined>()
    const due = clock() + waitMs
    let timer = setTimeout(() => {
      const lateMs = clock() - due
      if (!isLate(lateMs)) return resolve(undefined)
      timer = setTimeout(() => resolve(undefined), Math.min(lateMs, waitMs))
    }, waitMs)
    reply.then((result) => {
      clearTimeout(timer)
      resolve(result)
    })
    return promise
  }

  /** Waits for the late reply, with a separate timer: the request that sent the call may have been cancelled. */
  function lateOf<Result>(
    reply: Promise<Result>,
    { waitUntil }: StoreOptions,
  ): Promise<Result | StoreError> {
    const late = inTime(reply, MAX_LATE_MS + MARGIN_MS).then(
      (result) => result ?? new StoreError('timeout'),
    )
    waitUntil?.(late) // otherwise the request ends before the reply arrives
    return late
  }

  const withLateTime = (options: StoreOptions, waitMs: number): StoreOptions => ({
    ...options,
    waitMs,
    deadlineMs: waitMs + MAX_LATE_MS,
  })

  return {
    async decide(requests, options = {}) {
      const { deadlineMs = DEADLINE_MS } = options
      const deciding = store.decide(requests, withLateTime(options, deadlineMs)).catch(asStoreError)
      const reply = await inTime<StoreResult>(deciding, deadlineMs)
      if (reply === undefined) {
        throw new StoreError('timeout', undefined, undefined, lateOf(deciding, options))
      }
      if (reply instanceof StoreError) throw reply
      return reply
    },

    async decideEach(lists, options = {}) {
      const { deadlineMs = DEADLINE_MS } = options
      const deciding = store.decideEach(lists, withLateTime(options, deadlineMs))
      const replies = await inTime(deciding, deadlineMs)
      if (replies) return replies
      const late = lateOf(deciding, options)
      return lists.map((_, index) => {
        const lateReply = late.then((all) => (all instanceof StoreError ? all : all[index]))
        return new StoreError('timeout', undefined, undefined, lateReply)
      })
    },
  }
}
