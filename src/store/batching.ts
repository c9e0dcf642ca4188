import { StoreError } from '../base/errors.ts'
import { type Waiter, WaitQueue } from '../base/wait-queue.ts'
import type { Store, StoreOptions, StoreRequest, StoreResult } from './store.ts'

/** The bound on the limits in one batch. Each occupies Redis for some 3 µs. */
const MAX_ROWS = 32
/** The bound on characters: a subject may be as long as what a client sends. */
const MAX_LENGTH = 16_384
/** Characters of a limit, beside its subject. */
const ROW_LENGTH = 100
/** While this many calls are in flight, the next one waits a little longer for others to join. */
const MANY_CALLS = 6
const HOLD_MS = 2
const DEADLINE_MS = 300
/** A request surely still exists this long after the end of its call, in ms. */
const GONE_MS = 500
/** The hint of a timeout whose list was never sent: nothing was charged. */
export const NOT_SENT = 'not sent'

export interface BatchingOptions {
  /** ms since the epoch */
  clock?: () => number
  /** Lets other requests run for `ms`. */
  wait?: (ms: number) => Promise<void>
}

interface List {
  requests: StoreRequest[]
  limits: number
  length: number
  /** How long its request waits, ms. */
  waitMs: number
  /** How long its call may take, ms. */
  deadlineMs: number
  /** When its request stops waiting, ms since the epoch. */
  until: number
}

type QueuedList = Waiter<List, StoreResult>

/**
 * A store that batches calls: lists of the same turn of the event loop go in one call. Only while six calls are in flight, a list waits
 * 2 ms for others.
 *
 * There is no leader, which could be cancelled before it sends: each request, when its turn comes, sends its own list and what else is
 * queued, unless another request has taken its list. The request that takes a list off the queue sends it.
 *
 * Only calls with `waitUntil` join a batch, since the sender must go on when its own client is gone.
 */
export function withBatching(
  store: Store,
  { clock = Date.now, wait = nextTurn }: BatchingOptions = {},
): Store {
  const queue = new WaitQueue<List, StoreResult>()
  /** The calls in flight. One whose request was cancelled never ends, so it counts only until its deadline. */
  const calls = new Set<{ until: number }>()

  function busy(): boolean {
    if (calls.size < MANY_CALLS) return false
    const now = clock()
    for (const call of calls) if (call.until <= now) calls.delete(call)
    return calls.size >= MANY_CALLS
  }

  async function sendInTurn(own: QueuedList, waitUntil: NonNullable<StoreOptions['waitUntil']>) {
    await wait(0)
    if (queue.has(own) && busy()) await wait(HOLD_MS)
    if (queue.has(own) && !isOver(own, clock())) waitUntil(send(take(own)))
  }

  /** Drops a list whose request no longer waits: the request is gone, or its turn came after its deadline. */
  function isOver(one: QueuedList, now: number): boolean {
    if (one.until > now) return false
    queue.delete(one)
    one.answer(new StoreError('timeout', NOT_SENT))
    return true
  }

  /** Takes a list and the queued ones that fit in its batch. Other lists are sent by their own requests. */
  function take(own: QueuedList): QueuedList[] {
    const now = clock()
    const taken = [own]
    let { limits, length } = own
    queue.delete(own)
    for (const one of queue) {
      if (isOver(one, now)) continue
      if (!areAlike(leftOf(own, now), leftOf(one, now))) continue
      limits += one.limits
      length += one.length
      if (limits > MAX_ROWS || length > MAX_LENGTH) break
      queue.delete(one)
      taken.push(one)
    }
    return taken
  }

  async function send(lists: QueuedList[]): Promise<void> {
    const now = clock()
    const waitMs = Math.max(1, ...lists.map((list) => leftOf(list, now)))
    const goesOnMs = Math.max(...lists.map(({ deadlineMs, waitMs }) => deadlineMs - waitMs))
    const call = { until: now + waitMs }
    calls.add(call)
    const requests = lists.map((list) => list.requests)
    const options = { waitMs, deadlineMs: waitMs + goesOnMs }
    const replies = await store.decideEach(requests, options).catch((): StoreResult[] => [])
    calls.delete(call)
    const end = clock()
    lists.forEach((list, index) => {
      if (!isGone(list, end)) list.answer(replies[index] ?? new StoreError('internal'))
    })
  }

  return {
    async decide(requests, options = {}) {
      const { waitUntil, idempotency, now, deadlineMs = DEADLINE_MS, waitMs = deadlineMs } = options
      if (!waitUntil || idempotency || now !== undefined) return store.decide(requests, options)
      const list = { requests, ...sizeOf(requests), waitMs, deadlineMs, until: clock() + waitMs }
      // A caller that sets `waitMs` has a timer.
      const own = queue.join(list, options.waitMs === undefined ? deadlineMs : undefined)
      void sendInTurn(own, waitUntil)
      const reply = (await own.answered) ?? new StoreError('timeout')
      if (reply instanceof StoreError) throw reply
      return reply
    },
    decideEach: store.decideEach,
  }
}

/** Whether the request of a list has ended. The runtime warns if a promise of such a request is resolved. */
const isGone = ({ until, waitMs, deadlineMs }: QueuedList, now: number) =>
  now > until + (deadlineMs - waitMs) + GONE_MS

/** The rest of a request's wait, in ms; at most the whole, even if the clock was set back. */
const leftOf = ({ waitMs, until }: QueuedList, now: number) => Math.min(waitMs, until - now)

/** Batch only requests with similar deadlines: a batch runs until its longest, and the breaker notices a hung store only then. */
const areAlike = (leftMs: number, otherMs: number) => leftMs <= 2 * otherMs && otherMs <= 2 * leftMs

function sizeOf(requests: StoreRequest[]) {
  const limits = requests.flatMap((request) => request.limits)
  return {
    limits: limits.reduce((sum, { penalty }) => sum + (penalty ? 2 : 1), 0),
    length: limits.reduce((sum, { subject }) => sum + subject.length + ROW_LENGTH, 0),
  }
}

const { navigator, setImmediate } = globalThis as {
  navigator?: { userAgent?: string }
  setImmediate?: (resolve: () => void) => unknown
}
const inWorkers = navigator?.userAgent === 'Cloudflare-Workers'

/** For 0 ms: one turn of the event loop. A timer of 0 ms takes 1 ms, on Workers as in Node. */
async function nextTurn(ms: number): Promise<void> {
  if (ms === 0 && inWorkers) await new Response('').text()
  else if (ms === 0 && setImmediate) await new Promise<void>((resolve) => setImmediate(resolve))
  else await new Promise((resolve) => setTimeout(resolve, ms))
}
