/** Calls wait for their turn in the limits of the other side, for slots, and for the ends of cooldowns. */
import { spanText, waitText } from '../core/base/duration.ts'
import { sleep } from '../core/base/sleep.ts'
import { withResolvers } from '../core/base/with-resolvers.ts'
import { answer } from '../core/decide/decide.ts'
import type { PolicyLimit } from '../core/decide/limit.ts'
import type { LimiterParts, Outcome } from '../core/decide/question.ts'
import { holdsSlots } from '../core/decide/settle.ts'
import type { Matched } from '../core/program/match.ts'
import { createRoom } from '../features/turns/room.ts'
import { bannedIn, type createCooldowns } from './cooldowns.ts'
import { OutboundError } from './error.ts'
import type { parseOptions } from './options.ts'
import type { SlotQueues } from './slot-queue.ts'

/** So often a call in a cooldown asks again, ms: an operator may have lifted it. */
const ASK_MS = 10_000

/** What a call asks: its policies, and their limits, which have one subject. */
export interface Asked {
  matched: Matched
  limits: PolicyLimit[]
}

export function createTurns(
  { waitMs, maxWaiting, slots }: ReturnType<typeof parseOptions>,
  cooldowns: ReturnType<typeof createCooldowns>,
  partsOf: () => LimiterParts,
  waitUntil: (promise: Promise<unknown>) => void,
) {
  const room = createRoom(maxWaiting)

  /** Waits until a call has its turn. */
  async function next(
    { matched, limits }: Asked,
    untilMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Outcome> {
    const [first] = limits
    const mostMs = Math.max(0, untilMs - Date.now())
    const guest = room.enter({ mostMs, subjects: [], question: () => undefined })
    if (guest.isFull) {
      throw new OutboundError('full', `${maxWaiting} calls wait already (maxWaiting)`, null)
    }
    const { promise: closed, resolve } = withResolvers<void>()
    const abort = () => resolve()
    signal?.addEventListener('abort', abort)
    let queued: ReturnType<SlotQueues['join']> | undefined

    /** Asks the store, unless it is known that the call cannot pass. */
    async function ask(): Promise<Outcome | Obstacle> {
      const coolMs = first ? cooldowns.restOf(first.subject) : 0
      if (coolMs > 0) return { coolMs }
      const slot = limits.find((limit) => holdsSlots(limit) && slots.waiting(limit) > 0)
      if (slot && !queued) return { slot }
      const restMs = () => Math.max(0, untilMs - Date.now())
      const question = { matched, waitMs: restMs() }
      const outcome = await answer(question, partsOf(), { closed, waitUntil })
      if (outcome.decision.allowed) return outcome
      signal?.throwIfAborted()
      const obstacle = obstacleOf(limits, outcome, restMs(), waitMs)
      if (first && 'coolMs' in obstacle) cooldowns.note(first)
      return obstacle
    }

    try {
      for (;;) {
        signal?.throwIfAborted()
        const found = await ask()
        if ('decision' in found) return found
        if ('slot' in found) {
          queued ??= slots.join(found.slot, untilMs, signal)
          if (Date.now() >= untilMs) {
            throw new OutboundError('slots', `no slot became free within ${spanText(waitMs)}`, null)
          }
          await queued.next()
        } else {
          if (Date.now() + found.coolMs > untilMs) throw tooLate(found.coolMs, waitMs)
          await sleep(Math.min(found.coolMs, ASK_MS), signal)
        }
      }
    } finally {
      guest.leave()
      queued?.leave()
      signal?.removeEventListener('abort', abort)
    }
  }

  return {
    next,
    slots,
    get waiting() {
      return room.size
    },
  }
}

/** Why a call has no turn yet: the rest of a cooldown, or a limit without a free slot. */
type Obstacle = { coolMs: number } | { slot: PolicyLimit }

/** Tells what a refused call can wait for in the rest of its wait. @throws {OutboundError} if there is nothing */
function obstacleOf(
  limits: PolicyLimit[],
  { decision, error }: Outcome,
  restMs: number,
  waitMs: number,
): Obstacle {
  const { fallback, retryAfterMs } = decision
  if (fallback === 'deny') {
    const message = `the store did not answer (${error!.code})`
    throw new OutboundError('store-error', message, null, { cause: error })
  }
  const coolMs = bannedIn(decision.limits)
  if (coolMs > 0) return { coolMs }
  if (retryAfterMs === null) {
    const message = 'the cost of the call is above the limit: it never has a turn'
    throw new OutboundError('too-large', message, null)
  }
  const refusing = decision.limits.filter(({ allowed }) => !allowed)
  const full = refusing.find(({ unit }) => unit === 'concurrent-requests')
  if (!full) throw tooLate(retryAfterMs, waitMs)
  const turns = refusing.filter(({ unit }) => unit !== 'concurrent-requests')
  const turnMs = Math.max(0, ...turns.map((one) => one.retryAfterMs!))
  if (turnMs > restMs) throw tooLate(turnMs, waitMs)
  return { slot: limits.find(({ terms }) => terms.name === full.policy)! }
}

const tooLate = (turnMs: number, waitMs: number): OutboundError =>
  new OutboundError(
    'wait',
    `the turn of the call is in ${waitText(turnMs)}, and wait is ${spanText(waitMs)}`,
    turnMs,
  )
