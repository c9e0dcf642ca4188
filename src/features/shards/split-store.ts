/** Sharding: a store of several databases, each with a part of the subjects. */
import { asStoreError, StoreError } from '../../core/base/errors.ts'
import type {
  Correction,
  OnRefund,
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
  StoreResult,
  StoreState,
} from '../../core/connection/store.ts'
import { rendezvous } from './rendezvous.ts'
import {
  admits,
  chargedIn,
  type Fragment,
  type Group,
  type Plan,
  split,
  statesBy,
} from './split.ts'

export interface Shard {
  name: string
  store: Store
}

/** Lists of requests for one shard. */
export interface ShardLists {
  shard: number
  lists: StoreRequest[][]
}

/**
 * Decides lists in several shards at the same time. Never rejects: each list gets its reply or its error.
 * @param isOne true if the parts belong to one list, so that each has one list
 */
export type DecideParts = (
  parts: ShardLists[],
  options: StoreOptions,
  isOne: boolean,
) => Promise<StoreResult[][]>

export interface SplitOptions {
  /** Defaults to nothing. */
  onRefund?: OnRefund
}

/** The deadline of a refund, ms. It is long because no request waits for it, and a failed refund blocks the units until they expire. */
const REFUND_MS = 5_000

/** A store of several databases. Rendezvous hashing over the names of the databases assigns each subject to a shard. */
export function createShards(databases: readonly Shard[], options?: SplitOptions): Store {
  const shardOf = rendezvous(databases.map(({ name }) => name))
  /** Each shard gets a call of its own. Its errors have the name of the shard. */
  const decideParts: DecideParts = (parts, options, isOne) =>
    Promise.all(
      parts.map(async ({ shard, lists }) => {
        const { name, store } = databases[shard]!
        const own = withShardKey(options, name)
        const replies = isOne
          ? [await store.decide(lists[0]!, own).catch(asStoreError)]
          : await store.decideEach(lists, own)
        return replies.map((reply) => (reply instanceof StoreError ? reply.from(name) : reply))
      }),
    )
  return createSplitStore(shardOf, decideParts, options)
}

/**
 * A store that splits lists by shard. A list with all its limits on one shard is one call to that shard.
 *
 * Otherwise all shards are called at the same time. Each shard charges all of its limits of a request, or none. If one shard refuses, the
 * charges of the other shards are refunded in the background. So no limit is ever exceeded, but until the refund a quota looks smaller
 * than it is. The same calls peek at the state before the charge, because that is the answer if another shard refuses.
 */
export function createSplitStore(
  shardOf: (subject: string) => number,
  decideParts: DecideParts,
  { onRefund = () => {} }: SplitOptions = {},
): Store {
  function decideAll(
    lists: StoreRequest[][],
    options: StoreOptions,
    isOne: boolean,
  ): Promise<StoreResult[]> {
    const plans = lists.map((list) => split(list, shardOf))
    const decided = callAll(plans, options, isOne).then((replies) =>
      plans.map(({ groups }, index) => {
        const all = replies[index]!
        return groups ? merged(lists[index]!, groups, all, options) : all[0]!
      }),
    )
    // Finish the refunds after the client has disconnected. Otherwise a disconnect would keep charges of a refused request.
    if (plans.some(({ groups }) => groups)) options.waitUntil?.(decided)
    return decided
  }

  /** Calls each shard once. Returns the replies by list, in the order of the shards of its plan. */
  async function callAll(
    plans: Plan[],
    options: StoreOptions,
    isOne: boolean,
  ): Promise<StoreResult[][]> {
    const parts = new Map<number, ShardLists>()
    for (const { shards, shardLists } of plans) {
      shards.forEach((shard, place) => {
        const part = parts.get(shard)
        if (part) part.lists.push(shardLists[place]!)
        else parts.set(shard, { shard, lists: [shardLists[place]!] })
      })
    }
    const answers = await decideParts([...parts.values()], options, isOne)
    const answersOf = new Map([...parts.keys()].map((shard, at) => [shard, answers[at]!.values()]))
    return plans.map(({ shards }) => shards.map((shard) => answersOf.get(shard)!.next().value!))
  }

  /** Merges the replies of the shards to one list, and refunds the charges of refused requests. */
  function merged(
    list: StoreRequest[],
    groups: Group[],
    replies: StoreResult[],
    options: StoreOptions,
  ): StoreResult {
    const answers = replies.filter((reply): reply is StoreReply => !(reply instanceof StoreError))
    const errors = replies.filter((reply) => reply instanceof StoreError)
    const conflict = errors.find(({ code }) => code === 'idempotency-conflict')
    const failure = conflict ?? errors[0]
    const states = list.map((): StoreState[] => [])

    for (const { fragments, isSplitTake } of groups) {
      const answered = fragments.flatMap((fragment) => {
        const reply = replies[fragment.place]!
        return reply instanceof StoreError ? [] : [{ fragment, reply }]
      })
      const passes = !failure && answered.every(({ fragment, reply }) => admits(fragment, reply))
      // With an idempotency key, keep the charges if another shard fails: a repeated call finds them. Refund them if a shard refuses.
      const keeps =
        options.idempotency &&
        !conflict &&
        answered.every(({ fragment, reply }) => admits(fragment, reply) || hasFallenBack(reply))
      for (const { fragment, reply } of answered) {
        const charged = isSplitTake && admits(fragment, reply)
        const requests = charged && !passes ? [fragment.before!] : fragment.requests
        for (const [cell, state] of statesBy(requests, reply)) {
          states[cell.request]![cell.index] = passes
            ? { decidedAt: reply.decidedAt, ...state }
            : state
        }
        if (charged && !passes && !(keeps && !hasFallenBack(reply))) {
          refund(fragment, reply, options)
        }
      }
    }
    if (failure) return new StoreError(failure.code, failure.cause as string, failure.store)
    const known = answers.filter((reply) => !hasFallenBack(reply))
    return {
      decidedAt: Math.min(...answers.map(({ decidedAt }) => decidedAt)),
      states,
      ...(known.length > 0 && known.every(({ replayed }) => replayed) && { replayed: true }),
    }
  }

  /** Refunds the charges of a shard in the background. A replay has charged nothing. */
  function refund(
    { shard, ...fragment }: Fragment,
    reply: StoreReply,
    { now, waitUntil }: StoreOptions,
  ) {
    const limits = reply.replayed ? [] : chargedIn(fragment, reply)
    if (limits.length === 0) return
    const states = new Map(
      [...statesBy(fragment.requests, reply)].map(([cell, state]) => [cell.limit, state]),
    )
    const requests = limits.map((limit): Correction => {
      const { decidedAt = reply.decidedAt, fallback } = states.get(limit)!
      return { mode: 'refund', limits: [limit], decidedAt, ...(fallback && { fallback }) }
    })
    const parts = [{ shard, lists: [requests] }]
    const options: StoreOptions = { deadlineMs: REFUND_MS }
    if (now !== undefined) options.now = now
    if (waitUntil) options.waitUntil = waitUntil
    const done = decideParts(parts, options, true).then(([replies]) => {
      const error = replies!.find((reply) => reply instanceof StoreError)
      onRefund([...new Set(limits.map(({ subject }) => subject))], error)
    })
    waitUntil?.(done)
  }

  return {
    async decide(list, options = {}) {
      const [reply] = await decideAll([list], options, true)
      if (reply instanceof StoreError) throw reply
      return reply!
    },
    decideEach: (lists, options = {}) => decideAll(lists, options, false),
  }
}

/** Adds the shard to the idempotency key. Two shards may be one database, as in `npm start`, and would replay each other's calls. */
const withShardKey = ({ idempotency, ...options }: StoreOptions, name: string): StoreOptions =>
  idempotency
    ? { ...options, idempotency: { ...idempotency, key: `${name}@${idempotency.key}` } }
    : options

/** True if `onStoreError` has answered in place of a shard. */
const hasFallenBack = ({ states }: StoreReply) => states[0]![0]!.fallback !== undefined
