/** Leases: an isolate takes units in advance and spends them without a call. */
import { systemClock } from '../../core/base/clock.ts'
import { asStoreError, StoreError } from '../../core/base/errors.ts'
import { LruCache } from '../../core/base/lru.ts'
import { isUsed } from '../../core/config/feature.ts'
import {
  type Limit,
  type Store,
  type StoreOptions,
  type StoreReply,
  type StoreRequest,
  type StoreResult,
  storeBy,
} from '../../core/connection/store.ts'
import type { Feature } from '../../core/feature.ts'
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
/** The clock of a request that another one wakes may be late by this much, ms. Beyond that, the clock was set back. */
const MAX_STALE_MS = 1_000
/** The maximum memory of all leases. Enough for about 2,400 leases; an isolate has 128 MB. */
const MAX_BYTES = 4 * 1024 * 1024
const LEASE_BYTES = 1_600

/**
 * For a limit whose terms have a `lease`, a call takes more units than its request needs, and later requests spend them without a call.
 *
 * The call refunds the unspent units of the previous lease, and takes the additional ones by a `follow`, which is charged only if the
 * request passes, and cannot refuse it. So the script needs no special support for leases.
 *
 * A request makes a call only for the limits whose lease holds too few units. If a call in flight carries enough units, the request
 * waits for it, for at most half of its deadline. If it gets no units, it makes its own call.
 */
export function withLeases(
  store: Store,
  { clock = systemClock, maxBytes = MAX_BYTES } = {},
): Store {
  const quotasByName = new LruCache<LeasedQuota>({
    maxSize: maxBytes,
    sizeOf: (name) => 2 * name.length + LEASE_BYTES,
    onEvict: ({ lease }) => lease.forget(),
  })
  let latest = Number.NEGATIVE_INFINITY

  function forgetIf(matches: (name: string) => boolean) {
    for (const { lease } of quotasByName.removeIf(matches)) lease.forget()
  }

  /** The latest time of any request: the clock of a woken request may be late. Forgets all leases if the clock was set back. */
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
      const known = quotasByName.get(name)
      const quota = known ?? { lease: createLease(limit, lease), calls: new Set() }
      if (!known) quotasByName.set(name, quota)
      quotas.set(limit, quota)
    }
    return quotas
  }

  async function decide(requests: StoreRequest[], quotas: LeasedLimits, options: StoreOptions) {
    const { deadlineMs = DEADLINE_MS } = options
    const start = time()
    const inFlight = areLeased(requests, quotas) ? reserve(quotas, start) : undefined
    const reply =
      inFlight && (await inFlight.waiting.join({ requests, quotas }, deadlineMs / 2).answered)
    if (reply) return reply
    const leftMs = Math.ceil(Math.max(deadlineMs / 2, deadlineMs - (time() - start)))
    return call(requests, { ...options, deadlineMs: leftMs })
  }

  /** Never rejects. */
  async function call(requests: StoreRequest[], options: StoreOptions & { deadlineMs: number }) {
    const sentAt = time()
    const quotas = quotasOf(requests) // not those from before the wait: they may have been forgotten
    const spent = spend(requests, quotas, sentAt)
    if (spent) return spent

    const lent: Lent = new Map()
    for (const [limit, { lease }] of quotas) {
      if (!lease.has(limit.cost, sentAt)) continue
      lent.set(limit, { ...lease.take(limit.cost), spentAt: lease.status(sentAt).decidedAt })
    }
    const sent = callFor(requests, quotas, lent, sentAt)
    const leaseCall = begin(sent, quotas, lent, sentAt + options.deadlineMs)
    let answer: StoreResult
    try {
      const requested = sent.map(({ request }) => request)
      const reply = await store.decide(requested, options)
      answer = conclude(requests, sent, reply, quotas, lent, { sentAt, receivedAt: time() })
    } catch (error) {
      // The lent units are lost, because `onStoreError` may admit the request.
      answer = asStoreError(error)
    }
    leaseCall.end(time())
    return answer instanceof StoreError ? answer : withLeasedMark(requests, answer)
  }

  /** Marks a refusal as `leased` if this isolate may soon have units for the request. Such a refusal must not be cached. */
  function withLeasedMark(requests: StoreRequest[], reply: StoreReply): StoreReply {
    const now = time()
    const refusing = requests.flatMap(({ limits }, index) =>
      limits.filter((_, at) => !reply.states[index]![at]!.allowed),
    )
    const isProvisional = refusing.some((limit) => {
      const quota = limit.terms.lease && quotasByName.peek(nameOf(limit))
      return quota && mayGetMore(quota, now)
    })
    return isProvisional ? { ...reply, leased: true } : reply
  }

  /** Forgets the leases, and the units in flight, of quotas that an operator changes. */
  function forgetOperated(requests: StoreRequest[]) {
    const limits = requests.flatMap(({ mode, limits }) => (OPERATIONS.includes(mode) ? limits : []))
    if (limits.length > 0) forgetIf((name) => limits.some((limit) => isOf(limit, name)))
  }

  async function decideAll(lists: StoreRequest[][], options: StoreOptions): Promise<StoreResult[]> {
    forgetOperated(lists.flat())
    const deciding = store.decideEach(lists, options)
    const replies = await deciding.finally(() => forgetOperated(lists.flat()))
    return replies.map((reply, index) =>
      reply instanceof StoreError ? reply : withLeasedMark(lists[index]!, reply),
    )
  }

  return storeBy(async (lists, options) => {
    const [requests, ...others] = lists
    if (!requests || others.length > 0) return decideAll(lists, options)
    const { idempotency, now: givenTime, waitUntil } = options
    const isTake = requests.every(({ mode }) => mode === 'take' || mode === 'follow')
    if (isTake && !hasLease(requests)) return store.decideEach(lists, options)
    const mayLease = isTake && !idempotency && givenTime === undefined
    const quotas: LeasedLimits = mayLease ? quotasOf(requests) : new Map()
    if (quotas.size === 0) return decideAll(lists, options)
    const now = time()
    for (const [{ cost }, { lease }] of quotas) lease.addDemand(cost, now)
    const spent = spend(requests, quotas, now)
    if (spent) return [spent]
    const deciding = decide(requests, quotas, options)
    waitUntil?.(deciding) // other requests may wait for it, even if its own client has disconnected
    return [await deciding]
  })
}

const OPERATIONS: StoreRequest['mode'][] = ['reset', 'ban', 'unban', 'override', 'restore']

const hasLease = (requests: StoreRequest[]) =>
  requests.some(({ limits }) => limits.some(({ terms }) => terms.lease))

/** The name includes the terms and the floor: units taken under old terms, or under a smaller floor, are not spent under others. */
const nameOf = ({ subject, floor = 0, terms: { tag, limit, burst, lease } }: Limit) =>
  `${tag} ${limit} ${burst} ${floor} ${lease?.max} ${lease?.ttlMs} ${subject}`

const isOf = ({ subject, terms: { tag } }: Limit, name: string) =>
  name.startsWith(`${tag} `) && name.endsWith(` ${subject}`)

export const compile: Feature['compile'] = ({ config }) =>
  isUsed(config, ({ lease }) => lease) ? { layer: withLeases } : {}
