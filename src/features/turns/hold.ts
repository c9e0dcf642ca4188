/** Holds admitted requests until their turn. */
import type { LimitState } from '../../core/base/decision.ts'
import {
  isRefundable,
  type StoreReply,
  type StoreRequest,
  type StoreState,
} from '../../core/connection/store.ts'
import type { HoldRequest, LimiterParts, Outcome, Pending } from '../../core/decide/question.ts'
import { chargeOf, REFUND_MS } from '../../core/decide/settle.ts'
import { withChanged } from '../../core/respond/own-fields.ts'
import type { WaitingRoom } from './room.ts'
import { sleep } from './sleep.ts'
import { longestWait, waits } from './waits.ts'

/** Holds requests while there is room, and gives the places of the others up. */
export const createHold =
  (room: WaitingRoom): HoldRequest =>
  (outcome, pending, reply, parts, options) => {
    const waitMs = longest(reply)
    if (waitMs === 0 || !outcome.decision.allowed) return outcome
    const giveUp = () => {
      // With an idempotency key the place stays: a repeated call gets the charged reply.
      if (!options.idempotency) {
        const giving = refund(pending, reply, parts)
        options.waitUntil?.(giving)
      }
      return refused(outcome)
    }
    // Several stores each know only the waits of their own limits.
    const limits = pending.limits.filter(waits)
    if (limits.length > 0 && waitMs > longestWait(limits)) return giveUp()
    const now = Date.now()
    const passedMs = reply.replayed ? Math.max(0, now - reply.decidedAt) : 0
    if (passedMs >= waitMs) return after(outcome, waitMs)
    if (room.isFull()) return giveUp()
    const restMs = waitMs - passedMs
    const leave = room.enter(now + restMs)
    const { closed } = options
    return sleep(restMs, closed ? undefined : options.request?.signal, closed).then((isStill) => {
      leave()
      return isStill ? { ...after(outcome, waitMs), mark: told(restMs) } : giveUp()
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
  return outcome
}

/** Tells a client how long its request has waited. */
const told = (waitedMs: number) => (response: Response) =>
  withChanged(response, (headers) =>
    headers.append('Server-Timing', `sluice;desc="waited";dur=${waitedMs}`),
  )

/** The outcome of a request that gives its place up. */
function refused({ decision }: Outcome): Outcome {
  const limits = (decision.limits as (LimitState & Pick<StoreState, 'waitMs'>)[]).map(
    ({ waitMs, decidedAt: _, ...limit }) =>
      waitMs ? { ...limit, allowed: false, retryAfterMs: waitMs } : limit,
  )
  const enforced = limits.filter(({ mode }) => mode === 'enforce')
  const retryAfterMs = Math.max(...enforced.map(({ retryAfterMs }) => retryAfterMs ?? 0))
  const { slot: __, ...rest } = decision
  return { decision: { ...rest, allowed: false, reason: 'limited', retryAfterMs, limits } }
}

/** Refunds all charges of a request that does not go on. */
async function refund(pending: Pending, reply: StoreReply, parts: LimiterParts): Promise<void> {
  const requests: StoreRequest[] = []
  pending.requests.forEach(({ limits }, index) => {
    limits.forEach((limit, at) => {
      const state = reply.states[index]![at]!
      const charge = isRefundable(limit, state) && chargeOf(state, reply.decidedAt)
      if (charge) requests.push({ mode: 'refund', limits: [limit], ...charge })
    })
  })
  if (requests.length === 0) return
  await parts.store.decide(requests, { deadlineMs: REFUND_MS }).catch(parts.onStoreError)
  const subjects = requests.flatMap(({ limits }) => limits.map(({ subject }) => subject))
  parts.denialCache?.forget(Date.now(), subjects)
}
