import { asStoreError, StoreError } from '../../base/errors.ts'
import { LruCache } from '../../base/lru.ts'
import type { Limit, Store, StoreOptions, StoreReply, StoreRequest, StoreResult } from '../store.ts'
import { begin, callFor, conclude, type Lent } from './call.ts'
import {
  areLeased,
  type LeasedLimits,
  type LeasedQuota,
  mayGetMore,
  reserve,
  spend,
} from './in-flight.ts'
import { createLease } from './lease.ts'

const DEADLINE_MS = 300
/** How much the clocks of requests that wake each other may differ, in ms. Beyond it the clock was set back. */
const MAX_STALE_MS = 1_000
/** Of the 128 MB of an isolate; enough for some 2,400 leases. */
const MAX_BYTES = 4 * 1024 * 1024
const LEASE_BYTES = 1_600

export interface LeasesOptions {
  /** ms since the epoch */
  clock?: () => number
  maxBytes?: number
}

/**
 * A store that takes several units of a quota at once if its terms have a `lease`, and spends them without a call.
 *
 * A call takes the units beyond the request's own cost by a `follow`: it is charged only if the request has passed, and a follow that
 * does not fit refuses no request. Unspent units of an earlier lease are refunded before it. So the script needs no notion of leases.
 *
 * A call covers only the limits whose lease is short; if none is, no call is made. While a call is in flight that brings more than its
 * own request needs, other requests wait for it. A request that waited and got nothing makes its own call, as without leases; one with
 * nothing to wait for does so immediately.
 */
export function withLeases(
  store: Store,
  { clock = Date.now, maxBytes = MAX_BYTES }: LeasesOptions = {},
): Store {
  const known = new LruCache<LeasedQuota>({
    maxSize: maxBytes,
    sizeOf: (name) => 2 * name.length + LEASE_BYTES,
    onEvict: ({ lease }) => lease.forget(),
  })
  let latest = Number.NEGATIVE_INFINITY

  function forgetIf(isForgotten: (name: string) => boolean) {
    for (const { lease } of known.removeIf(isForgotten)) lease.forget()
  }

  /** The clock, which may lag for a request that another one wakes. If it was set back, the age of every lease is unknown. */
  function time(): number {
    const now = clock()
    if (now < latest - MAX_STALE_MS) {
      forgetIf(() => true)
      latest = now
    }
    latest = Math.max(latest, now)
    return latest
  }

  function quotasOf(requests: StoreRequest[]): LeasedLimits {
    const quotas: LeasedLimits = new Map()
    for (const limit of requests.flatMap(({ limits }) => limits)) {
      const { lease } = limit.terms
      if (!lease || limit.cost === 0) continue
      const name = nameOf(limit)
      let quota = known.get(name)
      if (!quota) {
        quota = { lease: createLease(limit.terms, lease), calls: new Set() }
        known.set(name, quota)
      }
      quotas.set(limit, quota)
    }
    return quotas
  }

  /** Never rejects. */
  async function decide(
    requests: StoreRequest[],
    quotas: LeasedLimits,
    options: StoreOptions,
  ): Promise<StoreResult> {
    const { deadlineMs = DEADLINE_MS, waitMs = deadlineMs } = options
    const start = time()
    const call = areLeased(requests, quotas) ? reserve(quotas, start) : undefined
    const reply = call && (await call.waiting.join({ requests, quotas }, waitMs / 2).answered)
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
  ): Promise<StoreResult> {
    const sentAt = time()
    const quotas = quotasOf(requests) // again: they may have been forgotten during a wait
    const spent = areLeased(requests, quotas) && spend(requests, quotas, sentAt)
    if (spent) return spent

    const lent: Lent = new Map()
    for (const [limit, { lease }] of quotas) {
      if (!lease.has(limit.cost, sentAt)) continue
      lent.set(limit, { ...lease.take(limit.cost), spentAt: lease.status(sentAt).decidedAt })
    }
    const sent = callFor(requests, quotas, lent, sentAt)
    const call = begin(sent, quotas, lent, sentAt + waitMs)
    let answer: StoreResult
    try {
      const reply = await store.decide(
        sent.map(({ request }) => request),
        options,
      )
      answer = conclude(requests, sent, reply, quotas, lent, { sentAt, receivedAt: time() })
    } catch (error) {
      // Lent units are lost: the request may pass by its policies' `onStoreError`.
      answer = asStoreError(error)
    }
    call.end(time())
    return answer instanceof StoreError ? answer : marked(requests, answer)
  }

  /** Marks a refusal that this isolate may soon have the units for: it must not be cached. */
  function marked(requests: StoreRequest[], reply: StoreReply): StoreReply {
    const now = time()
    const refusing = requests.flatMap(({ limits }, index) =>
      limits.filter((_, at) => !reply.states[index]![at]!.allowed),
    )
    const isProvisional = refusing.some((limit) => {
      const quota = limit.terms.lease && known.peek(nameOf(limit))
      return quota && mayGetMore(quota, now)
    })
    return isProvisional ? { ...reply, leased: true } : reply
  }

  /** Forgets the leases of quotas that an operator changes, and the units in flight. */
  function forgetOperated(requests: StoreRequest[]) {
    const limits = requests.flatMap(({ mode, limits }) =>
      mode === 'reset' || mode === 'ban' || mode === 'unban' ? limits : [],
    )
    if (limits.length > 0) forgetIf((name) => limits.some((limit) => isOf(limit, name)))
  }

  return {
    async decide(requests, options = {}) {
      const { idempotency, now: said, waitUntil } = options
      const takes = requests.every(({ mode }) => mode === 'take' || mode === 'follow')
      if (takes && !hasLease(requests)) return store.decide(requests, options)
      const mayLease = takes && !idempotency && said === undefined
      const quotas: LeasedLimits = mayLease ? quotasOf(requests) : new Map()
      if (quotas.size === 0) {
        forgetOperated(requests)
        const reply = await store.decide(requests, options).finally(() => forgetOperated(requests))
        return marked(requests, reply)
      }
      const now = time()
      for (const [{ cost }, { lease }] of quotas) lease.asked(cost, now)
      const spent = areLeased(requests, quotas) && spend(requests, quotas, now)
      if (spent) return spent
      const deciding = decide(requests, quotas, options)
      waitUntil?.(deciding) // other requests wait for it, even if its own client is gone
      const reply = await deciding
      if (reply instanceof StoreError) throw reply
      return reply
    },

    async decideEach(lists, options) {
      forgetOperated(lists.flat())
      const replies = await store.decideEach(lists, options)
      forgetOperated(lists.flat())
      return replies.map((reply, index) =>
        reply instanceof StoreError ? reply : marked(lists[index]!, reply),
      )
    },
  }
}

const hasLease = (requests: StoreRequest[]) =>
  requests.some(({ limits }) => limits.some(({ terms }) => terms.lease))

/** Changed terms make another lease: units that were taken by the old ones are not spent by the new. */
const nameOf = ({ subject, terms: { tag, limit, burst, lease } }: Limit) =>
  `${tag} ${limit} ${burst} ${lease?.max} ${lease?.ttlMs} ${subject}`

const isOf = ({ subject, terms: { tag } }: Limit, name: string) =>
  name.startsWith(`${tag} `) && name.endsWith(` ${subject}`)
