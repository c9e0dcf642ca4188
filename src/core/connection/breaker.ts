/** A circuit breaker. While the store fails repeatedly, calls fail at once instead of each waiting for its deadline. */
import { isLate, isWithin, systemClock } from '../base/clock.ts'
import { StoreError, type StoreErrorCode } from '../base/errors.ts'
import { DEADLINE_MS, LATE_MS, type StoreOptions, type StoreRequest } from './store.ts'

/** The number of consecutive failures that opens the circuit. */
const THRESHOLD = 5
/** How long the circuit stays open before a trial call. */
const HOLD_MS = 1_000
/** A trial call without a result is ignored after this time: a cancelled request never reports its result. */
const MAX_TRIAL_MS = 10_000
/** Longer times for errors that a second does not fix: an exceeded plan, a wrong token. */
const LONG_HOLD_MS: Partial<Record<StoreErrorCode, number>> = {
  'over-quota': 60_000,
  unauthorized: 10_000,
}

export interface BreakerOptions {
  clock?: () => number
  onOpen?: (code: StoreErrorCode) => void
  onClose?: (openMs: number) => void
}

/** A call with more limits than this may be slow although the store is healthy, so its duration is not watched. */
const MAX_ROWS = 128

/** The health of a database, as one isolate has seen it. Times are ms since the epoch. */
export interface Health {
  /** When the circuit opened. Absent once a call has an answer in time: meanwhile `onStoreError` decides, also while calls are tried. */
  openSince?: number
  /** Why the latest call failed. Absent while the circuit is closed. */
  failure?: StoreErrorCode
  /** When the latest answer in time came. Absent before the first one. */
  answeredAt?: number
}

export interface BegunCall {
  isOver: boolean
  end: (reply: unknown) => void
}

/**
 * Creates the breaker of an isolate. Five consecutive failures open the circuit: every decision fails at once with `circuit-open`. After one
 * second, one trial call at a time goes to the store. An answer in time closes the circuit. A call without a reply at its deadline has
 * failed, unless its timer fired late: then the isolate is busy. It still runs, and a late reply lets calls go to the store again.
 */
export function createBreaker({ clock = systemClock, onOpen, onClose }: BreakerOptions) {
  let failures = 0
  /** Set while the circuit is open. Without `hold` the store has answered late, and each call goes to it. */
  let opened: { since: number; failure: StoreErrorCode; hold?: Hold | undefined } | undefined
  let answeredAt: number | undefined
  /** Set while a trial call is in flight. After its end another call may try. */
  let trial: Hold | undefined

  function failed(code: StoreErrorCode) {
    failures += 1
    if (!opened && failures < THRESHOLD && !LONG_HOLD_MS[code]) return
    const now = clock()
    const until = now + (LONG_HOLD_MS[code] ?? HOLD_MS)
    if (!opened) onOpen?.(code)
    const { since = now, hold } = opened ?? {}
    opened = {
      since,
      failure: code,
      hold: { from: now, until: holds(hold, now) ? Math.max(until, hold.until) : until },
    }
  }

  /** Begins a call. @returns `undefined` if the circuit is open */
  function begin(
    lists: StoreRequest[][],
    { deadlineMs = DEADLINE_MS, deadline }: StoreOptions,
    now: number,
  ): BegunCall | undefined {
    const isTrial = opened?.hold !== undefined
    if (isTrial) {
      if (holds(opened?.hold, now) || holds(trial, now)) return undefined
      trial = { from: now, until: now + Math.min(MAX_TRIAL_MS, Math.max(HOLD_MS, deadlineMs)) }
    }
    const until = now + deadlineMs
    let isSlow = false
    const overdue = () => {
      if (isLate(clock() - until) || !isSmall(lists)) return
      isSlow = true
      failed('timeout')
    }
    let timer: ReturnType<typeof setTimeout> | undefined
    if (deadline) deadline.at(deadlineMs, overdue)
    else timer = setTimeout(overdue, deadlineMs)
    const call: BegunCall = {
      isOver: false,
      end(reply) {
        call.isOver = true
        clearTimeout(timer)
        if (isTrial) trial = undefined
        if (isAnswer(reply)) {
          if (isSlow) {
            if (opened) opened.hold = undefined
            return
          }
          failures = 0
          answeredAt = clock()
          if (opened) onClose?.(answeredAt - opened.since)
          opened = undefined
          return
        }
        const error = Array.isArray(reply) ? reply[0] : reply
        const code = error instanceof StoreError ? error.code : 'internal'
        const isBusy = code === 'timeout' && isLate(clock() - until - LATE_MS)
        if (!isSlow && !isBusy) failed(code)
      },
    }
    return call
  }

  return {
    health: (): Health => ({
      ...(opened && { openSince: opened.since, failure: opened.failure }),
      ...(answeredAt !== undefined && { answeredAt }),
    }),
    begin,
  }
}

function isSmall(lists: StoreRequest[][]): boolean {
  let rows = 0
  for (const list of lists) for (const { limits } of list) rows += limits.length
  return rows <= MAX_ROWS
}

/** A time span without calls, ms since the epoch. */
interface Hold {
  from: number
  until: number
}

const holds = (hold: Hold | undefined, now: number): hold is Hold =>
  hold !== undefined && isWithin(now, hold.from, hold.until)

/** An error about the call or about one client's key is also an answer: the store is healthy. Of many replies one is enough. */
function isAnswer(reply: unknown): boolean {
  if (Array.isArray(reply)) return reply.length === 0 || reply.some(isAnswer)
  if (!(reply instanceof Error)) return true
  if (!(reply instanceof StoreError)) return false
  return (
    reply.code === 'idempotency-conflict' || /^(WRONGTYPE$|ERR sluice: )/.test(String(reply.cause))
  )
}
