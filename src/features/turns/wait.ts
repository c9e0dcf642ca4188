/** Requests that wait in the lines of their limits. */
import {
  REFUND_MS,
  type Store,
  type StoreReply,
  type StoreRequest,
  type StoreState,
  type Ticket,
} from '../../core/connection/store.ts'
import type { PolicyLimit } from '../../core/decide/limit.ts'
import type { StoreUse } from '../../core/decide/observer.ts'
import type { Outcome, Pending, StoreAnswer, Waiting } from '../../core/decide/question.ts'
import { withChanged } from '../../core/respond/own-fields.ts'
import type { WaitingRoom } from './room.ts'

export const createWaiting = (room: WaitingRoom): Waiting => ({
  watch: (store) => waking(store, room),

  enter(pending, parts, options, index) {
    const limits = pending.mode === 'take' ? (pending.requests[0]?.limits.filter(waits) ?? []) : []
    if (limits.length === 0) return undefined
    const { idempotency, request } = options
    const mostMs = Math.min(pending.waitMs ?? Infinity, ...limits.map(({ terms }) => terms.wait!))
    const startedAt = Date.now()
    const guest = room.enter(mostMs)
    const ticket: Ticket = {
      // A repeated call stands at the place of the first.
      id: idempotency ? `${idempotency.key.replace(/\W|_/g, '').slice(-24)}x${index}` : newId(),
      leftMs: mostMs,
      waitedMs: 0,
      ...(guest.isFull && { isFull: true }),
    }
    const subjects = [...new Set(limits.map(({ subject }) => subject))]

    /** Takes the ticket back, so that those behind need not wait for a request that does not come. */
    function leave() {
      const leaving = parts.store
        .decide([{ mode: 'leave', limits, ticket }], { deadlineMs: REFUND_MS })
        .catch(parts.onStoreError)
      options.waitUntil?.(leaving)
    }

    /** For how long the request may still wait after a reply, ms. A repeated call must come to the same result as the first. */
    function leftAfter({ replayed }: StoreReply): number {
      if (replayed) return mostMs // the time until the turn is that of the first call
      return idempotency ? ticket.leftMs : mostMs - (Date.now() - startedAt)
    }

    async function wait(
      first: StoreAnswer,
      again: (n: number) => Promise<StoreAnswer>,
    ): Promise<Outcome> {
      const closed = options.closed ?? (request && abortOf(request.signal))
      let [{ reply, outcome }, use, waitedMs] = [first, first.outcome.use, 0]
      let planned: number | undefined
      for (let n = 1; !outcome.decision.allowed; n += 1) {
        const [states] = reply.states
        const turnMs = guest.isFull ? undefined : turnOf(pending, states!, leftAfter(reply))
        if (turnMs === undefined) {
          if (mayHaveTicket(pending, states!, ticket)) leave()
          break
        }
        planned ??= Date.now() + turnMs
        // Of a stored reply, the time of the turn has passed, or another call waits for it.
        if (!reply.replayed && !(await guest.sleep(turnMs, subjects, closed))) {
          leave()
          break
        }
        waitedMs = Math.max(0, Date.now() - startedAt)
        ticket.waitedMs = waitedMs
        ticket.leftMs = Math.max(0, mostMs - waitedMs)
        ;({ reply, outcome } = await again(n))
        use = sum(use, outcome.use)
        // Units came back, so the next one may have room too.
        if (outcome.decision.allowed && Date.now() < planned) room.wake(subjects)
      }
      if (use) outcome.use = use
      return outcome.decision.allowed && waitedMs > 0
        ? { ...outcome, mark: told(waitedMs) }
        : outcome
    }

    return {
      ticket,
      wait(first, again) {
        if (first.outcome.decision.allowed) {
          guest.leave()
          return first.outcome
        }
        return wait(first, again).finally(() => guest.leave())
      },
    }
  },
})

/** A store that wakes those who wait when units come back. */
function waking(store: Store, room: WaitingRoom): Store {
  function wake(lists: StoreRequest[][]) {
    for (const request of lists.flat())
      if (gives.has(request.mode)) room.wake(request.limits.map(({ subject }) => subject))
  }
  return {
    async decide(requests, options) {
      const reply = await store.decide(requests, options)
      wake([requests])
      return reply
    },
    async decideEach(lists, options) {
      const replies = await store.decideEach(lists, options)
      wake(lists)
      return replies
    },
  }
}

/** The modes after which a limit may have more room. */
const gives = new Set<StoreRequest['mode']>([
  'leave',
  'override',
  'refund',
  'reset',
  'restore',
  'unban',
])

/** True if a limit may let its request wait. */
const waits = ({ terms, cost }: PolicyLimit): boolean => terms.wait !== undefined && cost > 0

/** Tells the requests of this isolate apart from those of others. A Worker may draw a random value only within a request. */
let isolate: string | undefined
let ids = 0
function newId(): string {
  isolate ??= crypto.randomUUID().replaceAll('-', '').slice(0, 10)
  ids += 1 // for all limiters of the isolate: they may share a store
  return `${isolate}${ids.toString(36)}`
}

/** The time until all limits have room, if the request may wait for it: nothing else refuses it. */
function turnOf({ requests }: Pending, states: StoreState[], leftMs: number): number | undefined {
  let turnMs = 0
  for (const [index, limit] of requests[0]!.limits.entries()) {
    const { allowed, retryAfterMs, bannedForMs } = states[index]!
    if (allowed) continue
    if (!waits(limit) || bannedForMs || retryAfterMs === null || retryAfterMs > leftMs)
      return undefined
    turnMs = Math.max(turnMs, retryAfterMs)
  }
  return turnMs
}

/**
 * True if the store may have given tickets to a request that does not wait: its turn was near enough when the call was sent, or several
 * stores have decided, which each know only their own limits. Any other refusal takes the tickets back.
 */
function mayHaveTicket(pending: Pending, states: StoreState[], { leftMs }: Ticket): boolean {
  if (turnOf(pending, states, leftMs) !== undefined) return true
  const { limits } = pending.requests[0]!
  if (limits.every(({ subject }) => subject === limits[0]!.subject)) return false
  return limits.some((limit, index) => {
    const { allowed, retryAfterMs } = states[index]!
    return waits(limit) && !allowed && retryAfterMs !== null && retryAfterMs <= leftMs
  })
}

const abortOf = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

const sum = (one: StoreUse | undefined, other: StoreUse | undefined): StoreUse | undefined =>
  one && other
    ? {
        ms: one.ms + other.ms,
        calls: one.calls + other.calls,
        billedCommands: one.billedCommands + other.billedCommands,
      }
    : (other ?? one)

/** Tells a client how long its request has waited. */
const told = (waitedMs: number) => (response: Response) =>
  withChanged(response, (headers) =>
    headers.append('Server-Timing', `sluice;desc="waited";dur=${waitedMs}`),
  )
