import { StoreError, type StoreErrorCode } from '../base/errors.ts'
import { isLate } from './lag.ts'
import type { Store, StoreOptions, StoreRequest } from './store.ts'

/** So many failures in a row open the circuit. */
const THRESHOLD = 5
/** How long it stays open before one request tries again. */
const HOLD_MS = 1_000
/** A request that tries has its deadline, but one that its client left may never tell how it ended. */
const MAX_TRY_MS = 10_000
/** A plan's limit or a wrong token does not mend itself in a second. */
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

/** Many limits take long by themselves: a large list that is slow says nothing about the store. */
const MAX_ROWS = 128

/**
 * A circuit breaker: after five failures in a row every decision fails at once (`circuit-open`), until one request at a time, a second
 * later, finds the store answering again. Each isolate has its own.
 *
 * A call that is not back when its caller stops waiting (`waitMs`) is a failure. It goes on: when its reply comes late it closes the
 * circuit. A timeout whose timer itself fired late is no failure: the isolate is behind, and the store may be well.
 */
export function withBreaker(
  store: Store,
  { clock = Date.now, onOpen, onClose }: BreakerOptions = {},
): Store & { isOpen(): boolean } {
  let failures = 0
  let opened: (Hold & { since: number }) | undefined
  /** While a request tries again: until another may, should the first never come back. */
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

  /** Whether a call now would fail without asking the store. */
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

  /** Begins a call, if the circuit lets one through. @returns takes what the store answered */
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
  lists.reduce(
    (sum, list) => sum + list.reduce((limits, one) => limits + one.limits.length, 0),
    0,
  ) <= MAX_ROWS

/** A time in which nobody is let through, ms since the epoch. */
interface Hold {
  from: number
  until: number
}

/** A clock that was set back ends it: else it would last for as long as that. */
const holds = (hold: Hold | undefined, now: number): hold is Hold =>
  hold !== undefined && hold.from <= now && now < hold.until

/** Whether the store did what it is there for, if only to say that the call was wrong, or the key of one client. */
function isAnswer(reply: unknown): boolean {
  if (!(reply instanceof Error)) return true
  if (!(reply instanceof StoreError)) return false
  return (
    reply.code === 'idempotency-conflict' || /^(WRONGTYPE$|ERR sluice: )/.test(String(reply.cause))
  )
}
