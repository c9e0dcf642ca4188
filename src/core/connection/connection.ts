/** The calls to one database, with a circuit breaker. Concurrent decisions of an isolate go in one call. */
import { systemClock } from '../base/clock.ts'
import { asStoreError, NOT_SENT, StoreError } from '../base/errors.ts'
import { inTime } from '../base/sleep.ts'
import { withResolvers } from '../base/with-resolvers.ts'
import { type BegunCall, type BreakerOptions, createBreaker, type Health } from './breaker.ts'
import {
  DEADLINE_MS,
  type Deadline,
  LATE_MS,
  type Store,
  type StoreOptions,
  type StoreRequest,
  type StoreResult,
  storeBy,
} from './store.ts'

/** The maximum number of limits in one batch. Each occupies Redis for about 3 µs. */
const MAX_ROWS = 32
/** The maximum number of characters in one batch. With readable keys, clients choose the length of subjects. */
const MAX_LENGTH = 16_384
/** The characters that a limit adds to a call, without its subject. */
const ROW_LENGTH = 100
/** If a batch is open for longer, the request that opened it may have been killed, ms. */
const MAX_OPEN_MS = 50
/** A request is known to live this long after the deadline of its call, ms. */
const GONE_MS = 500

export interface ConnectionOptions extends BreakerOptions {
  batching?: boolean
  /** Runs a task after `ms`, for simulations. Defaults to a timer. */
  later?: ((ms: number, task: () => void) => void) | undefined
}

interface Entry {
  lists: StoreRequest[][]
  limits: number
  length: number
  deadlineMs: number
  /** When the caller stops waiting, ms since the epoch. */
  until: number
  onCall: StoreOptions['onCall']
  answer: (results: StoreResult[]) => void
}

/** Entries that wait for their common call, which the request of the first one sends, with the sums of their sizes. */
interface Batch extends Pick<Entry, 'limits' | 'length'> {
  entries: Entry[]
  /** When any request may send the batch, ms since the epoch. */
  staleAt: number
}

/**
 * A store that batches calls, behind a circuit breaker. A list is sent at once, unless another one has left in the same millisecond and
 * has no reply yet. Then it opens a batch, which leaves at the end of the millisecond; with no other list, at the end of the next one,
 * because the second list saves the most. The lists of one `decideEach` stay together.
 *
 * The request that opens a batch sends it, under `waitUntil`, because its own client may disconnect: only calls with `waitUntil` join a
 * batch. The others have a promise of their own, since on Workers a request must not await a promise of another one, and a timer (that of
 * deadline.ts, which bounds their wait): if the runtime has killed the first request, another one sends the batch.
 */
export function connect(
  store: Store,
  { batching = true, clock = systemClock, later: given, ...options }: ConnectionOptions = {},
): Store & { health(): Health } {
  const later = given ?? soon
  const breaker = createBreaker({ clock, ...options })
  const open = new Set<Batch>()
  /** The latest call, and when it has left, ms since the epoch. */
  let latest: { call: BegunCall | undefined; leftAt: number } | undefined

  /** Begins a call for which later lists of its millisecond wait. */
  function begin(lists: StoreRequest[][], options: StoreOptions, now: number) {
    const call = breaker.begin(lists, options, now)
    latest = { call, leftAt: now }
    return call
  }

  function join(
    entry: Entry,
    now: number,
    waitUntil: NonNullable<StoreOptions['waitUntil']>,
    deadline: Deadline | undefined,
  ) {
    for (const batch of open) {
      if (!fits(entry, batch, now)) continue
      batch.entries.push(entry)
      batch.limits += entry.limits
      batch.length += entry.length
      const ms = Math.min(MAX_OPEN_MS, entry.deadlineMs / 2)
      const rescue = () => {
        if (open.has(batch)) waitUntil(send(batch))
      }
      if (deadline && !given) deadline.at(ms, rescue)
      else later(ms, rescue)
      return
    }
    const { limits, length } = entry
    const batch = { entries: [entry], limits, length, staleAt: now + MAX_OPEN_MS }
    open.add(batch)
    const { promise, resolve } = withResolvers<void>()
    waitUntil(promise)
    const leave = () => resolve(send(batch))
    later(1, () => (batch.entries.length > 1 ? leave() : later(1, leave)))
  }

  async function send(batch: Batch): Promise<void> {
    if (!open.delete(batch)) return // another request of the batch has sent it
    const now = clock()
    const entries = batch.entries.filter((entry) => {
      if (entry.until > now) return true
      entry.answer(entry.lists.map(() => new StoreError('timeout', NOT_SENT)))
      return false
    })
    if (entries.length === 0) return
    const deadlineMs = Math.max(1, ...entries.map((entry) => remainingMs(entry, now)))
    const lists = entries.flatMap((entry) => entry.lists)
    const options = { deadlineMs, onCall: listenersOf(entries) }
    const call = begin(lists, options, now)
    const failed = (error: unknown) => lists.map((): StoreResult => asStoreError(error))
    let replies = failed(new StoreError('circuit-open'))
    if (call) {
      // In a Worker a call that hangs ends only with its request.
      const late = () => new StoreError('timeout')
      const deciding = inTime(store.decideEach(lists, options), deadlineMs + LATE_MS, late)
      replies = await deciding.catch(failed)
      call.end(replies)
    }
    const repliedAt = clock()
    let next = 0
    for (const entry of entries) {
      const results = entry.lists.map(() => replies[next++] ?? new StoreError('internal'))
      if (!isGone(entry, repliedAt)) entry.answer(results)
    }
  }

  /** Begins a call if lists have none to share; otherwise they join a batch, and get its results. With an open circuit they get errors. */
  function beginOrJoin(lists: StoreRequest[][], options: StoreOptions) {
    const { waitUntil, idempotency, now: time, deadlineMs = DEADLINE_MS, onCall } = options
    const now = clock()
    const isShared = batching && waitUntil !== undefined && !idempotency && time === undefined
    if (isShared) {
      for (const batch of open) if (batch.staleAt <= now) waitUntil(send(batch))
      if (open.size > 0 || (latest?.leftAt === now && latest.call?.isOver === false)) {
        const { promise, resolve } = withResolvers<StoreResult[]>()
        const until = now + deadlineMs
        const entry = { lists, ...sizeOf(lists), deadlineMs, until, onCall, answer: resolve }
        join(entry, now, waitUntil, options.deadline)
        return promise
      }
    }
    const call = isShared ? begin(lists, options, now) : breaker.begin(lists, options, now)
    return call ?? Promise.resolve(lists.map(() => new StoreError('circuit-open')))
  }

  const both = storeBy((lists, options) => {
    if (lists.length === 0) return Promise.resolve([])
    const begun = beginOrJoin(lists, options)
    if (begun instanceof Promise) return begun
    const deciding = store.decideEach(lists, options)
    deciding.then(begun.end, begun.end)
    return deciding
  })
  return { health: breaker.health, ...both }
}

function listenersOf(entries: Entry[]): StoreOptions['onCall'] {
  if (!entries.some(({ onCall }) => onCall)) return undefined
  return (call) => {
    for (const { onCall } of entries) onCall?.(call)
  }
}

/** True if the request of an entry may have ended. The runtime warns if a promise of an ended request is resolved. */
const isGone = ({ until }: Entry, now: number) => now > until + LATE_MS + GONE_MS

/** How long a caller will still wait, ms. At most its whole wait, even if the clock was set back. */
const remainingMs = ({ deadlineMs, until }: Entry, now: number) => Math.min(deadlineMs, until - now)

/** A batch runs until its longest deadline, and the breaker notices a hung store only then. So only similar deadlines share a batch. */
function fits(entry: Entry, { entries, limits, length }: Batch, now: number): boolean {
  const [ms, firstMs] = [entry.deadlineMs, remainingMs(entries[0]!, now)]
  const areSimilar = ms <= 2 * firstMs && firstMs <= 2 * ms
  return areSimilar && limits + entry.limits <= MAX_ROWS && length + entry.length <= MAX_LENGTH
}

function sizeOf(lists: StoreRequest[][]) {
  let [count, length] = [0, 0]
  for (const list of lists) {
    for (const { limits } of list) {
      for (const { subject, penalty } of limits) {
        count += penalty ? 2 : 1
        length += subject.length + ROW_LENGTH
      }
    }
  }
  return { limits: count, length }
}

/** Runs a task after at most `ms`: a timer of Workers takes up to 1 ms longer, and in Node none takes less than 1 ms. */
const soon = (ms: number, task: () => void) => void setTimeout(task, ms - 1)
