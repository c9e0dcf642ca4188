/** Batching: sends concurrent decisions of an isolate in one call to the store. */
import { systemClock } from '../base/clock.ts'
import { StoreError } from '../base/errors.ts'
import { type Waiter, WaitQueue } from '../base/wait-queue.ts'
import type { Store, StoreOptions, StoreRequest, StoreResult } from './store.ts'

/** The maximum number of limits in one batch. Each occupies Redis for about 3 µs. */
const MAX_ROWS = 32
/** The maximum number of characters in one batch. With readable keys, clients choose the length of subjects. */
const MAX_LENGTH = 16_384
/** The characters that a limit adds to a call, without its subject. */
const ROW_LENGTH = 100
/** While this many calls are in flight, the next call waits `HOLD_MS` for more lists. */
const MANY_CALLS = 6
const HOLD_MS = 2
const DEADLINE_MS = 300
/** A request is known to live this long after the deadline of its call, ms. */
const GONE_MS = 500
/** The hint of a `timeout` whose list was never sent, so that nothing was charged. */
export const NOT_SENT = 'not sent'

export interface BatchingOptions {
  /** ms since the epoch */
  clock?: () => number
  /** Lets other requests run for `ms`. Defaults to a timer; for 0 ms to one turn of the event loop. */
  wait?: (ms: number) => Promise<void>
}

interface List {
  requests: StoreRequest[]
  limits: number
  length: number
  /** How long the request waits, ms. */
  waitMs: number
  /** How long the call may run, ms. */
  deadlineMs: number
  /** When the request stops waiting, ms since the epoch. */
  until: number
}

type QueuedList = Waiter<List, StoreResult>

/**
 * A store that batches calls. All lists of one turn of the event loop go in one call. While six calls are in flight, a list also waits
 * 2 ms for others.
 *
 * No request is the leader of a batch, because the runtime may cancel a request before it sends. Instead each request queues its list
 * and waits one turn. If its list is still queued then, it sends the list together with the other queued lists.
 *
 * Only calls with `waitUntil` join a batch: the sender must finish the call even if its own client disconnects.
 */
export function withBatching(
  store: Store,
  { clock = systemClock, wait = nextTurn }: BatchingOptions = {},
): Store {
  const queue = new WaitQueue<List, StoreResult>()
  /** The calls in flight. A call of a cancelled request never ends, so each call counts only until its deadline. */
  const calls = new Set<{ until: number }>()

  function busy(): boolean {
    if (calls.size < MANY_CALLS) return false
    const now = clock()
    for (const call of calls) if (call.until <= now) calls.delete(call)
    return calls.size >= MANY_CALLS
  }

  async function sendInTurn(list: QueuedList, waitUntil: NonNullable<StoreOptions['waitUntil']>) {
    await wait(0)
    if (queue.has(list) && busy()) await wait(HOLD_MS)
    if (queue.has(list) && !dropIfExpired(list, clock())) waitUntil(send(takeBatch(list)))
  }

  /** Drops a list after its deadline: its request was cancelled, or its turn came too late. */
  function dropIfExpired(list: QueuedList, now: number): boolean {
    if (list.until > now) return false
    queue.delete(list)
    list.answer(new StoreError('timeout', NOT_SENT))
    return true
  }

  /** Takes a list off the queue, and the queued lists that fit in its batch. The other lists stay for their own requests. */
  function takeBatch(first: QueuedList): QueuedList[] {
    const now = clock()
    const batch = [first]
    let { limits, length } = first
    queue.delete(first)
    for (const list of queue) {
      if (dropIfExpired(list, now)) continue
      if (!areSimilar(remainingMs(first, now), remainingMs(list, now))) continue
      limits += list.limits
      length += list.length
      if (limits > MAX_ROWS || length > MAX_LENGTH) break
      queue.delete(list)
      batch.push(list)
    }
    return batch
  }

  async function send(lists: QueuedList[]): Promise<void> {
    const now = clock()
    const waitMs = Math.max(1, ...lists.map((list) => remainingMs(list, now)))
    const lateMs = Math.max(...lists.map(({ deadlineMs, waitMs }) => deadlineMs - waitMs))
    const call = { until: now + waitMs }
    calls.add(call)
    const requests = lists.map((list) => list.requests)
    const options = { waitMs, deadlineMs: waitMs + lateMs }
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
      // A caller that sets `waitMs` has its own timer.
      const queued = queue.join(list, options.waitMs === undefined ? deadlineMs : undefined)
      void sendInTurn(queued, waitUntil)
      const reply = (await queued.answered) ?? new StoreError('timeout')
      if (reply instanceof StoreError) throw reply
      return reply
    },
    decideEach: store.decideEach,
  }
}

/** True if the request of a list may have ended. The runtime warns if a promise of an ended request is resolved. */
const isGone = ({ until, waitMs, deadlineMs }: QueuedList, now: number) =>
  now > until + (deadlineMs - waitMs) + GONE_MS

/** How long a request will still wait, ms. At most its whole wait, even if the clock was set back. */
const remainingMs = ({ waitMs, until }: QueuedList, now: number) => Math.min(waitMs, until - now)

/** A batch runs until its longest deadline, and the breaker notices a hung store only then. So only similar deadlines share a batch. */
const areSimilar = (leftMs: number, otherMs: number) =>
  leftMs <= 2 * otherMs && otherMs <= 2 * leftMs

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

/** Waits. 0 ms is one turn of the event loop: a timer of 0 ms takes 1 ms, both on Workers and in Node. */
async function nextTurn(ms: number): Promise<void> {
  if (ms === 0 && inWorkers) await new Response('').text()
  else if (ms === 0 && setImmediate) await new Promise<void>((resolve) => setImmediate(resolve))
  else await new Promise((resolve) => setTimeout(resolve, ms))
}
