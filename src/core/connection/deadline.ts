/** Bounds how long a caller waits for the store. The call itself may run longer, so that its late reply can be used. */
import { isLate, systemClock } from '../base/clock.ts'
import { asStoreError, StoreError } from '../base/errors.ts'
import { DEADLINE_MS, LATE_MS, type Store, type StoreResult, storeBy } from './store.ts'

/** Extra time for a request to receive the late reply, ms: another request may have sent the call and must pass the reply on. */
const MARGIN_MS = 1_000

export class Timeout extends StoreError {
  /** Resolves with the reply that arrives after the deadline, or with the error that ends the call. */
  readonly late: Promise<StoreResult>

  constructor(late: Promise<StoreResult>) {
    super('timeout')
    this.late = late
  }
}

/**
 * The wait of one caller, with the only timer of the request. A busy isolate runs overdue timers before it reads replies that have already
 * arrived, so a timer that fires late waits once more: as long as its delay, at most as long as the deadline.
 */
function createWait(waitMs: number, clock: () => number) {
  const startedAt = clock()
  /** When the timer is due, ms since the start: at the deadline, or before it for a task. */
  let dueMs = waitMs
  let task: (() => void) | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let end = () => {}

  /** Node warns about a negative delay: a busy isolate is late. */
  const dueIn = (ms: number) => setTimeout(due, Math.max(0, ms))

  function due() {
    const ripe = task
    task = undefined
    ripe?.()
    const lateMs = clock() - startedAt - dueMs
    if (dueMs < waitMs) {
      timer = dueIn(waitMs - dueMs - Math.max(0, lateMs))
      dueMs = waitMs
    } else if (isLate(lateMs)) timer = setTimeout(end, Math.min(lateMs, waitMs))
    else end()
  }

  return {
    at(ms: number, next: () => void): void {
      task = next
      const elapsedMs = clock() - startedAt
      dueMs = Math.min(waitMs, elapsedMs + ms)
      if (timer === undefined) return
      clearTimeout(timer)
      timer = dueIn(dueMs - elapsedMs)
    },

    /** Settles as the call does, or as `atDeadline` says if the call has no result in time. */
    for: <Result>(
      deciding: Promise<Result>,
      atDeadline: () => Result,
      atError: (error: unknown) => Result,
    ) =>
      new Promise<Result>((resolve) => {
        const settle = (result: Result) => {
          clearTimeout(timer)
          timer = undefined
          resolve(result)
        }
        end = () => settle(atDeadline())
        timer = dueIn(dueMs)
        deciding.then(settle, (error) => settle(atError(error)))
      }),
  }
}

/** A store that answers within the caller's deadline. The call runs for up to `LATE_MS` more: the error is a `Timeout` with its late reply. */
export const withDeadline = (store: Store, clock: () => number = systemClock): Store =>
  storeBy((lists, options) => {
    const { deadlineMs = DEADLINE_MS, waitUntil } = options
    const deadline = createWait(deadlineMs, clock)
    const deciding = store.decideEach(lists, { ...options, deadlineMs, deadline })
    const failed = (error: unknown): StoreResult[] => lists.map(() => asStoreError(error))
    const timedOut = () => {
      // Another timer: the request that sent the call may have been cancelled.
      const wait = createWait(LATE_MS + MARGIN_MS, clock)
      const late = wait.for(deciding, () => failed(new StoreError('timeout')), failed)
      waitUntil?.(late) // otherwise the request ends before the reply arrives
      return lists.map((_, index) => new Timeout(late.then((all) => all[index]!)))
    }
    return deadline.for(deciding, timedOut, failed)
  })
