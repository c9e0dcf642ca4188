/** Bounds how long a caller waits for the store. The call itself may run longer, so that its late reply can be used. */
import { isLate, systemClock } from '../base/clock.ts'
import { asStoreError, StoreError } from '../base/errors.ts'
import {
  type Alarm,
  DEADLINE_MS,
  LATE_MS,
  type Store,
  type StoreOptions,
  type StoreReply,
  type StoreResult,
} from './store.ts'

/** Extra time for a request to receive the late reply, ms: another request may have sent the call and must pass the reply on. */
const MARGIN_MS = 1_000

/** No answer within the deadline. */
export class Timeout extends StoreError {
  /** Resolves with the reply that arrives after the deadline, or with the error that ends the call. */
  readonly late: Promise<StoreResult>

  constructor(late: Promise<StoreResult>) {
    super('timeout')
    this.late = late
  }
}

/**
 * A store that answers within the caller's deadline. Defaults to 300 ms.
 *
 * After the deadline the call runs for up to five more seconds. The error is a `Timeout`, with the late reply.
 *
 * A busy isolate runs overdue timers before it reads replies that have already arrived. A timer that fires late therefore waits once
 * more: as long as its delay, at most as long as the deadline. The alarm of an inner layer uses the same timer.
 */
export function withDeadline(store: Store, clock: () => number = systemClock): Store {
  /** Settles as the call does, or as `atDeadline` does if the call has no result in time. */
  function inTime<Result>(
    deciding: Promise<Result>,
    waitMs: number,
    atDeadline: () => Result | Promise<Result>,
    alarm?: Alarm,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const start = clock()
      let dueMs = alarm?.ring ? alarm.ms : waitMs
      const end = () => resolve(atDeadline())
      const due = () => {
        alarm?.ring?.()
        alarm = undefined
        const lateMs = clock() - start - dueMs
        if (dueMs < waitMs) {
          timer = setTimeout(due, waitMs - dueMs - Math.max(0, lateMs))
          dueMs = waitMs
        } else if (isLate(lateMs)) timer = setTimeout(end, Math.min(lateMs, waitMs))
        else end()
      }
      let timer = setTimeout(due, dueMs)
      deciding.then(
        (result) => {
          clearTimeout(timer)
          resolve(result)
        },
        (error) => {
          clearTimeout(timer)
          reject(asStoreError(error))
        },
      )
    })
  }

  /** Waits for the late reply, with a separate timer: the request that sent the call may have been cancelled. */
  function lateOf<Result>(
    deciding: Promise<Result>,
    { waitUntil }: StoreOptions,
  ): Promise<Result | StoreError> {
    const waiting: Promise<Result | StoreError> = deciding.catch(asStoreError)
    const late = inTime(waiting, LATE_MS + MARGIN_MS, () => new StoreError('timeout'))
    waitUntil?.(late) // otherwise the request ends before the reply arrives
    return late
  }

  return {
    decide(requests, options = {}) {
      const { deadlineMs = DEADLINE_MS } = options
      const alarm: Alarm = { ms: deadlineMs }
      const deciding = store.decide(requests, { ...options, deadlineMs, alarm })
      const atDeadline = () => Promise.reject(new Timeout(lateOf(deciding, options)))
      return inTime<StoreReply>(deciding, deadlineMs, atDeadline, alarm)
    },

    decideEach(lists, options = {}) {
      const { deadlineMs = DEADLINE_MS } = options
      const deciding = store.decideEach(lists, { ...options, deadlineMs })
      return inTime(deciding, deadlineMs, () => {
        const late = lateOf(deciding, options)
        return lists.map(
          (_, index) =>
            new Timeout(late.then((all) => (all instanceof StoreError ? all : all[index]!))),
        )
      })
    },
  }
}
