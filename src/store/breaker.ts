import { StoreError, type StoreErrorCode } from '../errors.ts'
import type { Store } from './store.ts'

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

/**
 * A store that is not asked while it fails: after five failures in a row every decision fails at once (`circuit-open`),
 * until one request at a time, a second later, finds it answering again. Kept for each isolate by itself.
 */
export function withBreaker(
  store: Store,
  { clock = Date.now, onOpen, onClose }: BreakerOptions = {},
): Store {
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

  /** What to do when the store has answered, if it may be asked. */
  function admit(deadlineMs = 0): (() => void) | undefined {
    if (!opened) return () => {}
    const now = clock()
    if (holds(opened, now) || holds(trying, now)) return undefined
    trying = { from: now, until: now + Math.min(MAX_TRY_MS, Math.max(HOLD_MS, deadlineMs)) }
    return () => {
      trying = undefined
    }
  }

  return {
    async decide(requests, options) {
      const done = admit(options?.deadlineMs)
      if (!done) throw new StoreError('circuit-open')
      try {
        const reply = await store.decide(requests, options)
        succeeded()
        return reply
      } catch (error) {
        if (isAnswer(error)) succeeded()
        else failed(error instanceof StoreError ? error.code : 'internal')
        throw error
      } finally {
        done()
      }
    },

    async decideEach(lists, options) {
      if (lists.length === 0) return []
      const done = admit(options?.deadlineMs)
      if (!done) return lists.map(() => new StoreError('circuit-open'))
      const replies = await store.decideEach(lists, options)
      const [first] = replies
      if (replies.some(isAnswer)) succeeded()
      else failed(first instanceof StoreError ? first.code : 'internal')
      done()
      return replies
    },
  }
}

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
  return reply.code === 'once-conflict' || /^(WRONGTYPE$|ERR sluice: )/.test(String(reply.cause))
}
