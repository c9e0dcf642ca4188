import { isLate, isWithin } from '../base/clock.ts'
import { StoreError, type StoreErrorCode } from '../base/errors.ts'
import type { Store, StoreOptions, StoreRequest } from './store.ts'

/** Failures in a row that open the circuit. */
const THRESHOLD = 5
/** How long the circuit stays open before one request tries again. */
const HOLD_MS = 1_000
/** A try counts no longer than this: a cancelled request never reports how it ended. */
const MAX_TRY_MS = 10_000
/** A plan's limit or a wrong token is not corrected within a second. */
const LONG_HOLD_MS: Partial<Record<StoreErrorCode, number>> = {
  'over-quota': 60_000,
  unauthorized: 10_000,
}

export interface BreakerOptions {
  /** ms since the epoch */
  clock?: () => number
  onOpen?: (code: StoreErrorCode) => void
  onClose?: (openMs: number) => void
}

/** A list of more limits is not watched: it may be slow although the store is well. */
const MAX_ROWS = 128

/**
 * A circuit breaker: after five failures in a row every decision fails at once (`circuit-open`). A second later one request at a time
 * tries again, until the store answers. Each isolate has its own breaker.
 *
 * A call without a reply when its caller stops waiting (`waitMs`) is a failure. It goes on, and a late reply closes the circuit. A
 * timeout whose timer itself fired late does not count: the isolate is behind, and the store may be well.
 */
export function withBreaker(
  store: Store,
  { clock = Date.now, onOpen, onClose }: BreakerOptions = {},
): Store & { isOpen(): boolean } {
  let failures = 0
  let opened: (Hold & { since: number }) | undefined
  /** Set while a request tries again; another may try after its end. */
  let trying: Hold | undefined

  function failed(code: StoreErrorCode) {
    failures += 1
    if (!opened && failures < THRESHOLD && !LONG_HOLD_MS[code]) return
    const now = clock()
    const until = now + (LONG_HOLD_MS[code] ?? HOLD_MS)
    if (!opened) onOpen?.(code)
    opened = {
      since: opened?.since ?? now,
      from: now,
      until: holds(opened, now) ? Math.max(until, opened.until) : until,
    }
  }

  function succeeded() {
    failures = 0
    if (opened) onClose?.(clock() - opened.since)
    opened = undefined
  }

  const isOpen = (now = clock()) =>
    opened !== undefined && (holds(opened, now) || holds(trying, now))

  /** Counts a failure when `waitMs` have passed, unless it is cancelled before. */
  function watch(waitMs: number, onSlow: () => void): () => void {
    let timer: ReturnType<typeof setTimeout>
    const start = () => {
      const due = clock() + waitMs
      timer = setTimeout(() => {
        if (isLate(clock() - due)) return start()
        onSlow()
        failed('timeout')
      }, waitMs)
    }
    start()
    return () => clearTimeout(timer)
  }

  /** Begins a call. @returns a function that takes the reply; `undefined` if the circuit is open */
  function begin(
    isSmall: boolean,
    { deadlineMs, waitMs = deadlineMs }: StoreOptions = {},
  ): ((reply: unknown) => void) | undefined {
    const now = clock()
    const tries = opened !== undefined
    if (tries) {
      if (isOpen(now)) return undefined
      trying = { from: now, until: now + Math.min(MAX_TRY_MS, Math.max(HOLD_MS, waitMs ?? 0)) }
    }
    let isSlow = false
    const onSlow = () => {
      isSlow = true
    }
    const isWatched = isSmall && waitMs !== undefined && deadlineMs !== undefined
    const stop = isWatched && waitMs < deadlineMs ? watch(waitMs, onSlow) : () => {}
    return (reply) => {
      stop()
      if (tries) trying = undefined
      if (isAnswer(reply)) return succeeded()
      const code = reply instanceof StoreError ? reply.code : 'internal'
      const overdueMs = deadlineMs === undefined ? 0 : clock() - now - deadlineMs
      if (!isSlow && !(code === 'timeout' && isLate(overdueMs))) failed(code)
    }
  }

  return {
    isOpen: () => isOpen(),

    async decide(requests, options) {
      const end = begin(isSmall([requests]), options)
      if (!end) throw new StoreError('circuit-open')
      try {
        const reply = await store.decide(requests, options)
        end(reply)
        return reply
      } catch (error) {
        end(error)
        throw error
      }
    },

    async decideEach(lists, options) {
      if (lists.length === 0) return []
      const end = begin(isSmall(lists), options)
      if (!end) return lists.map(() => new StoreError('circuit-open'))
      const replies = await store.decideEach(lists, options)
      end(replies.find(isAnswer) ?? replies[0])
      return replies
    },
  }
}

const isSmall = (lists: StoreRequest[][]): boolean =>
  lists.flat().reduce((sum, { limits }) => sum + limits.length, 0) <= MAX_ROWS

/** A span in which no call is made, ms since the epoch. */
interface Hold {
  from: number
  until: number
}

const holds = (hold: Hold | undefined, now: number): hold is Hold =>
  hold !== undefined && isWithin(now, hold.from, hold.until)

/** Whether the store is well: it answered, even if only that the call or one client's key was wrong. */
function isAnswer(reply: unknown): boolean {
  if (!(reply instanceof Error)) return true
  if (!(reply instanceof StoreError)) return false
  return (
    reply.code === 'idempotency-conflict' || /^(WRONGTYPE$|ERR sluice: )/.test(String(reply.cause))
  )
}
