import type { QuotaState } from '../../base/decision.ts'
import { asStoreError, StoreError } from '../../base/errors.ts'
import type { Limit, Store, StoreOptions, StoreReply, StoreRequest } from '../store.ts'
import { brought, callFor, type Lent, type Sent } from './call.ts'
import { createLease, type Lease } from './lease.ts'
import { createShelf } from './shelf.ts'

/** The longest to wait for an answer where nobody says. */
const DEADLINE_MS = 300
/** So much the clocks of requests may differ that wake each other, in ms; beyond it the clock was set back. */
const MAX_STALE_MS = 1_000
/** Beyond it the least recently used go: of some 128 MB of an isolate, room for some 2,400. */
const MAX_BYTES = 4 * 1024 * 1024
const BYTES_EACH = 1_600

export interface LeasesOptions {
  /** ms since the epoch */
  clock?: () => number
  /** For leases and what is known of their quotas. */
  maxBytes?: number
}

/** A quota that has a lease, be it of nothing, and the calls under way that have units of it. */
interface Leased {
  lease: Lease
  calls: Set<Call>
}

/** Those of a request, by its limits. */
type Found = Map<Limit, Leased>

/** A call under way. */
interface Call {
  /** When nobody waits for it any more, ms since the epoch: its request may be gone. */
  until: number
  of: Map<Leased, Load>
  waiting: Set<Waiting>
}

/** Units of a quota that a call has, and that are neither held nor spent until it has ended. */
interface Load {
  /** Those that it brings beyond what its own request needs, and that nobody waits for. */
  free: number
  /** Those that it gives back, and those that were lent to its request. */
  bound: number
}

/** A request that waits for what a call brings. */
interface Waiting {
  requests: StoreRequest[]
  found: Found
  /** Lets it go on, with an answer or without. */
  answer: (reply: StoreReply | undefined) => void
}

/**
 * A store that takes several units of a quota at once where its terms have a `lease`, and spends them without a call.
 *
 * Beyond what a request costs its call takes more by one further request, a `follow`: it is charged only where the request has passed, and
 * stops nobody where it does not fit. What is left of an earlier lease goes back before it. So the script knows nothing of leases, and a
 * call that brings one is billed as any other.
 *
 * Of a request's limits those are asked that hold too little; where all hold enough there is no call. While a call is under way that
 * brings more than its own request needs, others wait for it, each by a promise and a timer of its own, and all they get is plain values
 * (batching.ts says why). Who gets nothing asks as if there were no leases; who finds nothing to wait for does so at once.
 */
export function withLeases(
  store: Store,
  { clock = Date.now, maxBytes = MAX_BYTES }: LeasesOptions = {},
): Store {
  const shelf = createShelf<Leased>(maxBytes, BYTES_EACH, ({ lease }) => lease.forget())
  let latest = Number.NEGATIVE_INFINITY

  /** The clock, which stands still for a request that another one wakes. Where it was set back nobody knows how long leases have lasted. */
  function time(): number {
    const now = clock()
    if (now < latest - MAX_STALE_MS) {
      for (const { lease } of shelf.remove(() => true)) lease.forget()
      latest = now
    }
    latest = Math.max(latest, now)
    return latest
  }

  function findAll(requests: StoreRequest[]): Found {
    const found: Found = new Map()
    for (const limit of requests.flatMap(({ limits }) => limits)) {
      const { lease } = limit.terms
      if (!lease || limit.cost === 0) continue
      const make = () => ({ lease: createLease(limit.terms, lease), calls: new Set<Call>() })
      found.set(limit, shelf.of(nameOf(limit), make))
    }
    return found
  }

  /** Finds a call under way that brings all that is missing here, of which nobody else has it from now on. */
  function reserve(found: Found, now: number): Call | undefined {
    const missing = [...found].filter(([{ cost }, { lease }]) => !lease.has(cost, now))
    const call = [...missing[0]![1].calls].find(
      ({ until, of }) =>
        now < until && missing.every(([{ cost }, leased]) => cost <= (of.get(leased)?.free ?? 0)),
    )
    if (call) for (const [{ cost }, leased] of missing) call.of.get(leased)!.free -= cost
    return call
  }

  /** What others did in vain is not their answer: who is given nothing asks. */
  async function wait(call: Call, requests: StoreRequest[], found: Found, longestMs: number) {
    const { promise, resolve } = Promise.withResolvers<StoreReply | undefined>()
    const own: Waiting = { requests, found, answer: resolve }
    call.waiting.add(own)
    // It also keeps the request from being taken for hung, which has nothing else of its own to wait for.
    const late = setTimeout(() => {
      call.waiting.delete(own)
      resolve(undefined)
    }, longestMs)
    const reply = await promise
    clearTimeout(late)
    return reply
  }

  /** Never rejects. */
  async function decide(
    requests: StoreRequest[],
    found: Found,
    options: StoreOptions,
  ): Promise<StoreReply | StoreError> {
    const { deadlineMs = DEADLINE_MS, waitMs = deadlineMs } = options
    const start = time()
    const call = isWhole(requests, found) ? reserve(found, start) : undefined
    const reply = call && (await wait(call, requests, found, waitMs / 2))
    if (reply) return reply
    const leftMs = Math.ceil(Math.max(waitMs / 2, waitMs - (time() - start)))
    return ask(requests, leftMs, {
      ...options,
      deadlineMs: leftMs + deadlineMs - waitMs,
      ...(options.waitMs !== undefined && { waitMs: leftMs }),
    })
  }

  async function ask(
    requests: StoreRequest[],
    waitMs: number,
    options: StoreOptions,
  ): Promise<StoreReply | StoreError> {
    const sentAt = time()
    const found = findAll(requests) // anew: while this one waited they may have been forgotten
    const spent = isWhole(requests, found) && spend(requests, found, sentAt)
    if (spent) return spent

    const lent: Lent = new Map()
    for (const [limit, { lease }] of found) {
      if (!lease.has(limit.cost, sentAt)) continue
      lent.set(limit, { ...lease.take(limit.cost), spentAt: lease.tell(sentAt).decidedAt })
    }
    const leases = new Map(
      [...found].map(([limit, one]) => [
        limit,
        { lease: one.lease, underWay: unitsOf(one, sentAt) },
      ]),
    )
    const sent = callFor(requests, leases, lent, sentAt)
    const call = begin(sent, found, lent, sentAt + waitMs)
    const reply = await answered(sent, options)
    // Where it fails what was lent is lost: its policies may have let the request pass.
    const answer =
      reply instanceof StoreError ? reply : conclude(requests, sent, reply, found, lent, sentAt)
    end(call)
    return answer instanceof StoreError ? answer : marked(requests, answer)
  }

  async function answered(sent: Sent[], options: StoreOptions): Promise<StoreReply | StoreError> {
    const requests = sent.map(({ request }) => request)
    try {
      return await store.decide(requests, options)
    } catch (error) {
      return asStoreError(error)
    }
  }

  /** Puts what a call brought where it belongs, and answers what was asked. */
  function conclude(
    requests: StoreRequest[],
    sent: Sent[],
    reply: StoreReply,
    found: Found,
    lent: Lent,
    sentAt: number,
  ): StoreReply {
    const receivedAt = time()
    const { decidedAt } = reply
    const asked = brought(sent, reply)
    for (const [limit, { more, ...state }] of asked) {
      found.get(limit)?.lease.bring(more, { state, decidedAt, sentAt, receivedAt })
    }
    const allows = (limit: Limit) => lent.has(limit) || asked.get(limit)!.allowed
    let passed = true // whether the last take did: else requests that follow it are not charged
    const states = requests.map(({ mode, limits }) => {
      if (mode === 'take') passed = limits.every(allows)
      return limits.map((limit): QuotaState => {
        const units = lent.get(limit)
        if (!units) {
          const { more, ...state } = asked.get(limit)!
          return { ...state, remaining: state.remaining + more }
        }
        const { lease } = found.get(limit)!
        if (!passed) lease.hold(units, receivedAt)
        const { state } = lease.tell(receivedAt)
        return passed ? { ...state, decidedAt: units.spentAt } : state
      })
    })
    return { decidedAt, states }
  }

  function begin(sent: Sent[], found: Found, lent: Lent, until: number): Call {
    const call: Call = { until, of: new Map(), waiting: new Set() }
    const add = (limit: Limit, free: number, bound: number) => {
      const leased = found.get(limit)!
      const load = call.of.get(leased) ?? { free: 0, bound: 0 }
      call.of.set(leased, { free: load.free + free, bound: load.bound + bound })
      leased.calls.add(call)
    }
    for (const { more, back } of sent) {
      if (more) add(more.limit, more.count, 0)
      if (back) add(back.limit, 0, back.count)
    }
    for (const [limit, { count }] of lent) add(limit, 0, count)
    return call
  }

  /** Who waits is answered from what has come, in turn, as far as it goes. */
  function end(call: Call) {
    const now = time()
    for (const { calls } of call.of.keys()) calls.delete(call)
    for (const { requests, found, answer } of call.waiting) answer(spend(requests, found, now))
    for (const leased of call.of.keys()) leased.lease.trim(unitsOf(leased, now))
  }

  /** A refusal for want of units that are held here, or on their way, is none for good. */
  function marked(requests: StoreRequest[], reply: StoreReply): StoreReply {
    const now = time()
    const mayGetMore = (leased: Leased) =>
      leased.lease.has(1, now) || underWay(leased, now).length > 0
    const refusing = requests.flatMap(({ limits }, index) =>
      limits.filter((_, at) => !reply.states[index]![at]!.allowed),
    )
    const known = refusing.flatMap(
      (limit) => (limit.terms.lease && shelf.find(nameOf(limit))) ?? [],
    )
    return known.some(mayGetMore) ? { ...reply, leased: true } : reply
  }

  /** After what operators do to a quota its leases are worth nothing, nor is what is on its way. */
  function forget(limits: Limit[]) {
    if (limits.length === 0) return
    const gone = shelf.remove((name) => limits.some((limit) => isOf(limit, name)))
    for (const { lease } of gone) lease.forget()
  }

  return {
    async decide(requests, options = {}) {
      const { idempotency, now: said, waitUntil } = options
      const takes = requests.every(({ mode }) => mode === 'take' || mode === 'follow')
      if (takes && !hasLease(requests)) return store.decide(requests, options)
      const found: Found =
        takes && !idempotency && said === undefined ? findAll(requests) : new Map()
      if (found.size === 0) {
        const limits = operated(requests)
        forget(limits)
        const reply = await store.decide(requests, options).finally(() => forget(limits))
        return marked(requests, reply)
      }
      const now = time()
      for (const [{ cost }, { lease }] of found) lease.asked(cost, now)
      const spent = isWhole(requests, found) && spend(requests, found, now)
      if (spent) return spent
      const deciding = decide(requests, found, options)
      waitUntil?.(deciding) // others wait for it, also where its own client is gone
      const reply = await deciding
      if (reply instanceof StoreError) throw reply
      return reply
    },

    async decideEach(lists, options) {
      const limits = lists.flatMap(operated)
      forget(limits)
      const replies = await store.decideEach(lists, options)
      forget(limits)
      return replies.map((reply, index) =>
        reply instanceof StoreError ? reply : marked(lists[index]!, reply),
      )
    },
  }
}

/** The answer from what is held; none where it is too little of anything. */
function spend(requests: StoreRequest[], found: Found, now: number): StoreReply | undefined {
  for (const [{ cost }, { lease }] of found) if (!lease.has(cost, now)) return undefined
  const told = new Map<Limit, QuotaState>()
  let latest = 0
  for (const [limit, { lease }] of found) {
    lease.take(limit.cost)
    const { decidedAt, state } = lease.tell(now)
    told.set(limit, state)
    latest = Math.max(latest, decidedAt)
  }
  return {
    decidedAt: latest,
    states: requests.map(({ limits }) => limits.map((limit) => told.get(limit)!)),
    leased: true,
  }
}

const hasLease = (requests: StoreRequest[]) =>
  requests.some(({ limits }) => limits.some(({ terms }) => terms.lease))

/** Whether all limits have a lease. */
const isWhole = (requests: StoreRequest[], found: Found) =>
  requests.every(({ limits }) => limits.every((limit) => found.has(limit)))

/** Calls of which somebody may still hear. */
function underWay({ calls }: Leased, now: number): Call[] {
  for (const call of calls) if (call.until <= now) calls.delete(call)
  return [...calls]
}

const unitsOf = (leased: Leased, now: number) =>
  underWay(leased, now)
    .map(({ of }) => of.get(leased)!)
    .reduce((sum, { free, bound }) => sum + free + bound, 0)

/** Other terms are another lease: what was taken by the old ones is not spent by the new. */
function nameOf({ subject, terms: { tag, limit, burst, lease } }: Limit) {
  return `${tag} ${limit} ${burst} ${lease?.max} ${lease?.ttlMs} ${subject}`
}
const isOf = ({ subject, terms: { tag } }: Limit, name: string) =>
  name.startsWith(`${tag} `) && name.endsWith(` ${subject}`)

const operated = (requests: StoreRequest[]) =>
  requests.flatMap(({ mode, limits }) =>
    mode === 'reset' || mode === 'ban' || mode === 'unban' ? limits : [],
  )
