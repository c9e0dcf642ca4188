/** Requests that wait in the lines of their limits. */
import { whenAborted } from '../../core/base/sleep.ts'
import {
  type Limit,
  REFUND_MS,
  type StoreReply,
  type StoreState,
  type Ticket,
} from '../../core/connection/store.ts'
import type { PolicyLimit } from '../../core/decide/limit.ts'
import type { StoreUse } from '../../core/decide/observer.ts'
import type { Outcome, Pending, StoreAnswer, Waiting } from '../../core/decide/question.ts'
import { type PolicyRequest, tellIsolate } from '../../core/decide/settle.ts'
import { withChanged } from '../../core/respond/own-fields.ts'
import type { WaitingRoom } from './room.ts'

export const createWaiting = (room: WaitingRoom): Waiting => ({
  wake: (limits) => room.wake(subjectsOf(limits.filter(({ terms }) => terms.wait !== undefined))),

  enter(pending, parts, options, index) {
    const limits = pending.mode === 'take' ? (pending.requests[0]?.limits.filter(waits) ?? []) : []
    if (limits.length === 0) return undefined
    const { idempotency, request } = options
    const mostMs = Math.min(pending.waitMs ?? Infinity, ...limits.map(({ terms }) => terms.wait!))
    const startedAt = Date.now()
    const subjects = subjectsOf(limits)
    // A repeated call must get the answer of the first.
    const question = idempotency ? () => undefined : questionOf(pending)
    const guest = room.enter({ mostMs, subjects, question })
    const ticket: Ticket = {
      // A repeated call stands at the place of the first.
      id: idempotency ? `${idempotency.key.replace(/\W|_/g, '').slice(-24)}x${index}` : newId(),
      leftMs: mostMs,
      waitedMs: 0,
      ...(guest.isFull && { isFull: true }),
    }

    /** So that those behind need not wait for a request that does not come. */
    function leave() {
      const requests: PolicyRequest[] = [{ mode: 'leave', limits, ticket: { ...ticket } }]
      const leaving = parts.store
        .decide(requests, { deadlineMs: REFUND_MS })
        .then(() => tellIsolate(requests, parts), parts.onStoreError)
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
      const closed = options.closed ?? (request && whenAborted(request.signal))
      let [{ reply, outcome }, use] = [first, first.outcome.use]
      let until = Number.POSITIVE_INFINITY
      let latest = 0 // the latest turn that it was told
      for (let n = 1; ; n += 1) {
        const [states] = reply.states
        const turnMs = guest.isFull ? undefined : turnOf(pending, states!, leftAfter(reply))
        if (turnMs === undefined) {
          if (mayHaveTicket(pending, states!, ticket)) leave()
          break
        }
        if (!outcome.decision.allowed) {
          until = Date.now() + turnMs
          latest = Math.max(latest, until)
        }
        let isStill = true
        // Of a stored reply, the time of the turn has passed, or another call waits for it.
        if (!reply.replayed) {
          isStill = await guest.wait({ outcome, ticket: ticket.id, until }, closed)
          ;({ outcome, ticket: ticket.id, until } = guest.answer)
        }
        if (outcome.decision.allowed) break
        latest = Math.max(latest, until) // it may be that of another request
        if (!isStill) {
          leave()
          break
        }
        ticket.waitedMs = Math.max(0, Date.now() - startedAt)
        ticket.leftMs = Math.max(0, mostMs - ticket.waitedMs)
        ;({ reply, outcome } = await again(n))
        use = sum(use, outcome.use)
      }
      if (use) outcome.use = use
      if (!outcome.decision.allowed || outcome === first.outcome) return outcome
      // Units came back or another request has left, so the next one may have room too.
      if (Date.now() < latest) room.wake(subjects)
      return { ...outcome, mark: told(Math.max(0, Date.now() - startedAt)) }
    }

    return {
      ticket,
      wait(first, again) {
        const isFirst = guest.isFull || first.reply.replayed || !guest.isBehind()
        if (first.outcome.decision.allowed && isFirst) {
          guest.leave()
          return first.outcome
        }
        return wait(first, again).finally(() => guest.leave())
      },
    }
  },
})

const subjectsOf = (limits: readonly Limit[]) => [...new Set(limits.map(({ subject }) => subject))]

/** Names what the store decides. Its result is that of any request with an equal question. */
function questionOf({ limits }: Pending): () => string {
  let question: string | undefined
  return () =>
    (question ??= JSON.stringify(
      limits.map(({ subject, terms: { tag, limit, burst }, cost, floor, override, values }) => [
        subject,
        [tag, limit, burst],
        [cost, floor],
        override,
        values,
      ]),
    ))
}

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

/** True if the store may have given tickets: the turn was near enough when the call was sent, or several stores each knew only their limits. */
function mayHaveTicket(pending: Pending, states: StoreState[], { leftMs }: Ticket): boolean {
  if (turnOf(pending, states, leftMs) !== undefined) return true
  const { limits } = pending.requests[0]!
  if (limits.every(({ subject }) => subject === limits[0]!.subject)) return false
  return limits.some((limit, index) => {
    const { allowed, retryAfterMs } = states[index]!
    return waits(limit) && !allowed && retryAfterMs !== null && retryAfterMs <= leftMs
  })
}

function sum(one: StoreUse | undefined, other: StoreUse | undefined): StoreUse | undefined {
  if (!one || !other) return other ?? one
  const [ms, calls] = [one.ms + other.ms, one.calls + other.calls]
  return { ms, calls, billedCommands: one.billedCommands + other.billedCommands }
}

const told = (waitedMs: number) => (response: Response) =>
  withChanged(response, (headers) =>
    headers.append('Server-Timing', `sluice;desc="waited";dur=${waitedMs}`),
  )
