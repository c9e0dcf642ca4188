import { isLate } from '../base/clock.ts'
import { asStoreError, StoreError } from '../base/errors.ts'
import type { Store, StoreOptions, StoreResult } from './store.ts'

/** How long a call goes on after its caller stopped waiting, in ms. */
const MAX_LATE_MS = 5_000
/** How much longer a request stays to receive the late reply, in ms: another request may be the one that reads it. */
const MARGIN_MS = 1_000
const DEADLINE_MS = 300

/**
 * A store that answers within the caller's deadline, while the call itself goes on for five seconds more. The error `timeout` then has
 * the late reply (`StoreError.late`), with the states of the limits and what was charged without an answer.
 *
 * An isolate that is behind runs its timers before it reads replies that have long arrived. So a timer that fires late waits once more
 * for the reply, as long as its own delay, at most as long as the deadline.
 */
export function withDeadline(store: Store, clock: () => number = Date.now): Store {
  /** Resolves with the reply, or with nothing at the deadline. */
  function inTime<Result>(reply: Promise<Result>, waitMs: number): Promise<Result | undefined> {
    const { promise, resolve } = Promise.withResolvers<Result | undefined>()
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

  /** Bounds the wait for a late reply by a timer of its own: another request may have sent the call, and be gone. */
  function lateOf<Result>(
    reply: Promise<Result>,
    { waitUntil }: StoreOptions,
  ): Promise<Result | StoreError> {
    const late = inTime(reply, MAX_LATE_MS + MARGIN_MS).then(
      (result) => result ?? new StoreError('timeout'),
    )
    waitUntil?.(late) // else the reply would find a request that is over
    return late
  }

  const patient = (options: StoreOptions, waitMs: number): StoreOptions => ({
    ...options,
    waitMs,
    deadlineMs: waitMs + MAX_LATE_MS,
  })

  return {
    async decide(requests, options = {}) {
      const { deadlineMs = DEADLINE_MS } = options
      const deciding = store.decide(requests, patient(options, deadlineMs)).catch(asStoreError)
      const reply = await inTime<StoreResult>(deciding, deadlineMs)
      if (reply === undefined) {
        throw new StoreError('timeout', undefined, undefined, lateOf(deciding, options))
      }
      if (reply instanceof StoreError) throw reply
      return reply
    },

    async decideEach(lists, options = {}) {
      const { deadlineMs = DEADLINE_MS } = options
      const deciding = store.decideEach(lists, patient(options, deadlineMs))
      const replies = await inTime(deciding, deadlineMs)
      if (replies) return replies
      const late = lateOf(deciding, options)
      return lists.map((_, index) => {
        const own = late.then((all) => (all instanceof StoreError ? all : all[index]))
        return new StoreError('timeout', undefined, undefined, own)
      })
    },
  }
}
