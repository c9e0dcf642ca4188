/** Sharding: a store of several databases, each with a part of the subjects. */
import { asStoreError, StoreError } from '../../core/base/errors.ts'
import type {
  Limit,
  OnRefund,
  Refund,
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
  StoreResult,
  StoreState,
  Unanswered,
} from '../../core/connection/store.ts'
import { rendezvous } from './rendezvous.ts'
import {
  admits,
  type Cell,
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

const unknown: StoreState = {
  allowed: false,
  remaining: 0,
  retryAfterMs: null,
  resetAfterMs: 0,
  nextAfterMs: 0,
}

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
    const failure = conflict ?? (answers.length > 0 && options.allowPartial ? undefined : errors[0])
    const states = list.map(({ limits }): StoreState[] => limits.map(() => unknown))
    const uncharged: [Cell, StoreState][] = []
    const refused: Group[] = []
    let isPartial = false

    for (const group of groups) {
      const { fragments, isTake, isSplitTake } = group
      const answered = fragments.flatMap((fragment) => {
        const reply = replies[fragment.place]!
        return reply instanceof StoreError ? [] : [{ fragment, reply }]
      })
      const unanswered = fragments.filter(({ place }) => replies[place] instanceof StoreError)
      for (const fragment of unanswered) {
        const error = replies[fragment.place] as StoreError
        for (const { request, index, limit } of fragment.requests.flatMap(({ cells }) => cells)) {
          states[request]![index] = { ...unknown, unanswered: unansweredOf(limit, fragment, error) }
        }
      }
      const hasRoom = answered.every(({ fragment, reply }) => admits(fragment, reply))
      const passes = !failure && hasRoom
      // With an idempotency key, keep the charges if another shard fails: a repeated call finds them. Refund them if a shard refuses.
      const keeps = options.idempotency && !conflict && hasRoom && errors.length > 0
      if (isTake && !passes) refused.push(group)
      isPartial ||= passes && fragments.length > 1 && unanswered.some(({ lead }) => lead)
      for (const { fragment, reply } of answered) {
        const charged = isSplitTake && admits(fragment, reply)
        const before = [...statesBy(charged ? [fragment.before!] : fragment.requests, reply)]
        if (passes) uncharged.push(...before)
        for (const [cell, state] of passes ? statesBy(fragment.requests, reply) : before) {
          states[cell.request]![cell.index] = passes
            ? { decidedAt: reply.decidedAt, ...state }
            : state
        }
        if (charged && !passes && !keeps) refund(fragment, reply, options)
      }
    }
    if (answers.length > 0 && !options.idempotency) refundLate(refused, replies, options)
    if (failure) {
      // If some shards have answered in time, `refundLate` above refunds the late replies of the others.
      const isLate = answers.length === 0 && errors.some(({ late }) => late)
      const late = isLate ? mergedLate(list, groups, replies, options) : undefined
      return new StoreError(failure.code, failure.cause as string, failure.store, late)
    }
    return {
      decidedAt: Math.min(...answers.map(({ decidedAt }) => decidedAt)),
      states,
      ...(isPartial && { uncharged: withStates(states, uncharged) }),
      ...(answers.every(({ replayed }) => replayed) && { replayed: true }),
      ...(answers.some(({ leased }) => leased) && { leased: true }),
    }
  }

  /** Merges the late replies if no shard has answered in time. The caller then decides whether to refund them. */
  async function mergedLate(
    list: StoreRequest[],
    groups: Group[],
    replies: StoreResult[],
    options: StoreOptions,
  ): Promise<StoreResult> {
    const wait = async (reply: StoreResult): Promise<StoreResult> =>
      reply instanceof StoreError && reply.late ? ((await reply.late) as StoreResult) : reply
    const all = await Promise.all(replies.map(wait))
    return merged(list, groups, all, { ...options, allowPartial: true })
  }

  /** Refunds late charges of requests that have already been refused. */
  function refundLate(groups: Group[], replies: StoreResult[], options: StoreOptions) {
    for (const fragment of groups.flatMap(({ fragments }) => fragments)) {
      const error = replies[fragment.place]
      if (!(error instanceof StoreError) || !error.late) continue
      const refunding = error.late.then((reply) => {
        if (reply instanceof StoreError || !admits(fragment, reply as StoreReply)) return
        refund(fragment, reply as StoreReply, options)
      })
      options.waitUntil?.(refunding)
    }
  }

  /** Refunds the charges of a shard in the background. A replay has charged nothing. */
  function refund(
    { shard, ...fragment }: Fragment,
    reply: StoreReply,
    { idempotency, ...options }: StoreOptions,
  ) {
    const limits = reply.replayed ? [] : chargedIn(fragment, reply)
    if (limits.length === 0) return
    const states = new Map(
      [...statesBy(fragment.requests, reply)].map(([cell, state]) => [cell.limit, state]),
    )
    const requests = limits.map((limit): Refund => {
      const { decidedAt = reply.decidedAt } = states.get(limit)!
      return { mode: 'refund', limits: [limit], decidedAt }
    })
    const parts = [{ shard, lists: [requests] }]
    const done = decideParts(parts, { ...options, deadlineMs: REFUND_MS }, true).then(
      ([replies]) => {
        const error = replies!.find((reply) => reply instanceof StoreError)
        onRefund([...new Set(limits.map(({ subject }) => subject))], error)
      },
    )
    options.waitUntil?.(done)
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

/** The error of a limit without an answer, and the time of its charge if the reply comes late. */
function unansweredOf(limit: Limit, fragment: Fragment, error: StoreError): Unanswered {
  const chargedLate = error.late?.then((late) => {
    const reply = late as StoreResult
    if (reply instanceof StoreError || reply.replayed || !admits(fragment, reply)) return undefined
    return chargedIn(fragment, reply).includes(limit) ? reply.decidedAt : undefined
  })
  return chargedLate ? { error, chargedLate } : { error }
}

const withStates = (states: StoreState[][], changes: [Cell, StoreState][]): StoreState[][] => {
  const copy = states.map((list) => [...list])
  for (const [{ request, index }, state] of changes) copy[request]![index] = state
  return copy
}
