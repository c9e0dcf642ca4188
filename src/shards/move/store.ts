/** A store that uses an old and a new layout of shards, and moves keys when requests need them. */
import { isWithin } from '../../base/clock.ts'
import { asStoreError, StoreError } from '../../base/errors.ts'
import { LruCache } from '../../base/lru.ts'
import { MOVED, type NamedDatabase, type SeveralStoresParts } from '../../base/several-stores.ts'
import {
  LATE_MS,
  type Store,
  type StoreOptions,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.ts'
import { keysOf } from '../../store/upstash/script.ts'
import { createTransport } from '../../store/upstash/transport.ts'
import { createShards } from '../split-store.ts'
import { type Layouts, moveKey, nameOf, placesOf, subjectOf } from './places.ts'
import { arrive, depart, departures, type SendCommands } from './transfer.ts'

const DEADLINE_MS = 300
/** The maximum of the keys that an isolate remembers as moved. */
const MAX_ARRIVED = 20_000
/** How long an isolate asks a shard for no further keys after a failure. */
const HOLD_MS = 1_000
/** The longest time of a move of keys. It is shorter than the life of a receipt. */
const MAX_MS = 30_000

type AskStore = (
  store: Store,
  lists: StoreRequest[][],
  options: StoreOptions,
) => Promise<StoreResult[]>

const askOne: AskStore = (store, [list], options) =>
  store.decide(list!, options).then(
    (reply) => [reply],
    (error) => [asStoreError(error)],
  )
const askEach: AskStore = (store, lists, options) => store.decideEach(lists, options)

/**
 * Creates the store of a move. The old layout splits a request, as before the move. Each of its shards decides its part until the move
 * has begun there. Then the shards of the new layout decide, after the keys of the request have moved.
 */
export function createMovingShards(
  layouts: Layouts,
  { databases, namespace, onRefund }: SeveralStoresParts<Store>,
): Store {
  const placeOf = placesOf(layouts)
  const begun: [string, string] = [moveKey(namespace), nameOf(layouts)]
  const named = new Map(databases.map((database) => [database.name, database]))
  const sends = new Map(
    databases.map(({ name, url, token }) => [name, createTransport(url ?? '', token ?? '')]),
  )
  const newLayout = createShards(
    layouts.to.map((name) => named.get(name)!),
    { onRefund },
  )
  const oldLayout = layouts.from.map((name) => ({ name, store: createOldShard(named.get(name)!) }))

  function createOldShard({ name, store }: NamedDatabase<Store>): Store {
    let hasBegun = false
    const placesIn = (list: StoreRequest[]) =>
      list.flatMap(({ limits }) => limits.map(({ subject }) => placeOf(subject).to))
    const isMoving = (list: StoreRequest[]) => placesIn(list).some((place) => place !== name)
    const failureOf = (list: StoreRequest[], failures: Map<string, StoreError>) =>
      failures.get(placesIn(list).find((place) => failures.has(place)) ?? '')

    async function decide(lists: StoreRequest[][], options: StoreOptions, ask: AskStore) {
      const { deadlineMs = DEADLINE_MS, idempotency } = options
      const startedAt = Date.now()
      const replies: (StoreResult | undefined)[] = lists.map(() => undefined)
      // An earlier call with the same idempotency key may have its reply at the old place.
      const stays = (list: StoreRequest[]) => !isMoving(list) || !hasBegun || idempotency
      const staying = indexesOf(lists, stays)
      if (staying.length > 0) {
        const answers = await ask(store, pick(lists, staying), options)
        for (const [n, index] of staying.entries()) {
          if (!hasMoved(answers[n]!)) replies[index] = answers[n]!
        }
      }
      const going = indexesOf(replies, (reply) => reply === undefined)
      if (going.length === 0) return replies as StoreResult[]
      hasBegun = true
      const restMs = () => Math.max(1, deadlineMs - (Date.now() - startedAt))
      const failures = await moveKeys(name, pick(lists, going), options, restMs())
      for (const index of going) replies[index] = failureOf(lists[index]!, failures)
      const arrived = going.filter((index) => !replies[index])
      if (arrived.length === 0) return replies as StoreResult[]
      const answers = await ask(newLayout, pick(lists, arrived), {
        ...options,
        deadlineMs: restMs(),
      })
      for (const [n, index] of arrived.entries()) replies[index] = answers[n]!
      return replies as StoreResult[]
    }

    return {
      async decide(list, options = {}) {
        const [reply] = await decide([list], options, askOne)
        if (reply instanceof StoreError) throw reply
        return reply!
      },
      decideEach: (lists, options = {}) => decide(lists, options, askEach),
    }
  }

  /** The keys that this isolate has moved, or found without a value. */
  const arrived = new LruCache<true>({ maxSize: MAX_ARRIVED })
  /** The time of the last failure of a shard, ms since the epoch. */
  const failedAt = new Map<string, number>()

  /** Moves the keys of these lists from an old shard. Returns an error for each new shard at which some of them may not have arrived. */
  async function moveKeys(
    name: string,
    lists: StoreRequest[][],
    { waitUntil, deadlineMs = DEADLINE_MS }: StoreOptions,
    waitMs: number,
  ): Promise<Map<string, StoreError>> {
    const byPlace = new Map<string, string[]>()
    for (const key of keysOf(lists.flat(), namespace)) {
      const { to } = placeOf(subjectOf(key))
      if (to !== name && !arrived.get(key)) byPlace.set(to, [...(byPlace.get(to) ?? []), key])
    }
    const signal = AbortSignal.timeout(Math.min(MAX_MS, deadlineMs + LATE_MS))
    async function moveTo(place: string, keys: string[]) {
      for (const some of departures(keys)) {
        const departed = await guarded(name, (send) => depart(send, begun, some, signal))
        if (departed.length > 0) await guarded(place, (send) => arrive(send, departed, signal))
        for (const key of some) arrived.set(key, true)
      }
    }
    const failures = new Map<string, StoreError>()
    await Promise.all(
      [...byPlace].map(async ([place, keys]) => {
        const moving = moveTo(place, keys).then(() => undefined, asStoreError)
        waitUntil?.(moving)
        const failure = await inTime(moving, waitMs)
        if (failure) failures.set(place, failure)
      }),
    )
    return failures
  }

  /** Runs a step at a shard, unless the shard has just failed. */
  async function guarded<Result>(name: string, step: (send: SendCommands) => Promise<Result>) {
    const failed = failedAt.get(name)
    const isHeld = failed !== undefined && isWithin(Date.now(), failed, failed + HOLD_MS)
    if (isHeld || named.get(name)!.isOpen()) throw new StoreError('circuit-open', undefined, name)
    try {
      return await step(sends.get(name)!)
    } catch (error) {
      failedAt.set(name, Date.now())
      throw asStoreError(error).from(name)
    }
  }

  return createShards(oldLayout, { onRefund })
}

/** Resolves with the result, or with the error `timeout` when the time is over. */
async function inTime(moving: Promise<StoreError | undefined>, ms: number) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<StoreError>((resolve) => {
    timer = setTimeout(() => resolve(new StoreError('timeout')), ms)
  })
  return Promise.race([moving, timeout]).finally(() => clearTimeout(timer))
}

const hasMoved = (reply: StoreResult) => reply instanceof StoreError && reply.cause === MOVED

const indexesOf = <T>(list: T[], is: (item: T) => unknown) =>
  list.flatMap((item, index) => (is(item) ? index : []))

const pick = <T>(list: T[], indexes: number[]) => indexes.map((index) => list[index]!)
