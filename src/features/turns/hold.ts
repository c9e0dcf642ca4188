/** Holds admitted requests until their turn. */
import type { LimitState } from '../../core/base/decision.ts'
import type { StoreReply, StoreRequest, StoreState } from '../../core/connection/store.ts'
import type { HoldRequest, LimiterParts, Outcome, Pending } from '../../core/decide/question.ts'
import { REFUND_MS } from '../../core/decide/settle.ts'
import { withChanged } from '../../core/respond/own-fields.ts'
import type { WaitingRoom } from './room.ts'
import { sleep } from './sleep.ts'

/** Holds requests while there is room, and gives the places of the others up. */
export const createHold =
  (room: WaitingRoom): HoldRequest =>
  (outcome, pending, reply, parts, options) => {
    const waitMs = longest(reply)
    if (waitMs === 0 || !outcome.decision.allowed) return outcome
    const giveUp = () => {
      const giving = refund(pending, reply, parts)
      options.waitUntil?.(giving)
      return refused(outcome)
    }
    if (room.isFull()) return giveUp()
    const leave = room.enter(Date.now() + waitMs)
    const { closed } = options
    return sleep(waitMs, closed ? undefined : options.request?.signal, closed).then((isStill) => {
      leave()
      return isStill ? after(outcome, waitMs) : giveUp()
    })
  }

/** The longest wait for a place of the reply. */
function longest({ states }: StoreReply): number {
  let longest = 0
  for (const some of states) for (const { waitMs = 0 } of some) longest = Math.max(longest, waitMs)
  return longest
}

/** The outcome after the wait: its waits count from now on. */
function after(outcome: Outcome, waitedMs: number): Outcome {
  const left = (ms: number) => Math.max(0, ms - waitedMs)
  // `bindingMatch` knows these objects.
  for (const limit of outcome.decision.limits as (LimitState & Pick<StoreState, 'waitMs'>)[]) {
    limit.resetAfterMs = left(limit.resetAfterMs)
    limit.nextAfterMs = left(limit.nextAfterMs)
    delete limit.waitMs
  }
  const timing = `sluice;desc="waited";dur=${waitedMs}`
  return {
    ...outcome,
    mark: (response) => withChanged(response, (headers) => headers.append('Server-Timing', timing)),
  }
}

/** The outcome of a request that gives its place up. */
function refused({ decision }: Outcome): Outcome {
  const limits = (decision.limits as (LimitState & Pick<StoreState, 'waitMs'>)[]).map(
    ({ waitMs, decidedAt: _, ...limit }) =>
      waitMs ? { ...limit, allowed: false, retryAfterMs: waitMs } : limit,
  )
  const retryAfterMs = Math.max(...limits.map(({ retryAfterMs }) => retryAfterMs ?? 0))
  const { slot: __, ...rest } = decision
  return { decision: { ...rest, allowed: false, reason: 'limited', retryAfterMs, limits } }
}

/** Refunds all charges of a request that does not go on. */
async function refund(pending: Pending, reply: StoreReply, parts: LimiterParts): Promise<void> {
  const requests: StoreRequest[] = []
  pending.requests.forEach(({ limits }, index) => {
    const states = reply.states[index]!
    if (!states.every(({ allowed }) => allowed)) return
    limits.forEach((limit, at) => {
      const { waitMs, decidedAt = reply.decidedAt } = states[at]!
      if (limit.cost === 0) return
      // A log would take its newest units back, which may be those of a later turn.
      if (waitMs && limit.terms.algorithm === 'sliding-log') return
      requests.push({ mode: 'refund', limits: [limit], decidedAt })
    })
  })
  if (requests.length === 0) return
  await parts.store.decide(requests, { deadlineMs: REFUND_MS }).catch(parts.onStoreError)
  const subjects = requests.flatMap(({ limits }) => limits.map(({ subject }) => subject))
  parts.denialCache?.forget(Date.now(), subjects)
}
