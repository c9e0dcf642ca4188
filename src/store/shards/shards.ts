import { asStoreError, StoreError } from '../../base/errors.ts'
import type {
  Limit,
  Refund,
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
  StoreResult,
  StoreState,
  Unanswered,
} from '../store.ts'
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

export interface ShardsOptions {
  /** Called when the charges of a request that another shard refused have been refunded, or could not be. */
  onRefund?: (subjects: string[], error?: StoreError) => void
}

/** No request waits for a refund, and units that are not refunded are lost until their window ends. */
const REFUND_MS = 5_000

const unknown: StoreState = {
  allowed: false,
  remaining: 0,
  retryAfterMs: null,
  resetAfterMs: 0,
  nextAfterMs: 0,
}

/**
 * A store of several databases. Rendezvous hashing over their names gives each subject its shard. A list whose limits are all on one shard
 * goes there in one call.
 *
 * Otherwise all shards are asked at once. Each decides its own limits of a request, all or none. If one refuses what another has charged,
 * the charge is refunded in the background, so that never more requests pass than the limits allow; until then the quota looks smaller
 * than it is. The same call asks each shard for the state before the charge, which is the answer if another shard refuses.
 */
export function createShards(
  databases: Shard[],
  { onRefund = () => {} }: ShardsOptions = {},
): Store {
  const shardOf = rendezvous(databases.map(({ name }) => name))

  function decideAll(
    lists: StoreRequest[][],
    askAt: (shard: number, lists: StoreRequest[][]) => Promise<StoreResult[]>,
    options: StoreOptions,
  ): Promise<StoreResult[]> {
    const plans = lists.map((list) => split(list, shardOf))
    const decided = askEach(plans, askAt).then((replies) =>
      plans.map(({ groups }, index) => {
        const all = replies[index]!
        return groups ? merged(lists[index]!, groups, all, options) : all.find(Boolean)!
      }),
    )
    // Refunds go on after the client has hung up. Otherwise hanging up would spend units that another shard refused.
    if (plans.some(({ groups }) => groups)) options.waitUntil?.(decided)
    return decided
  }

  /** Asks each shard once, all at the same time. Replies are by list, then by shard. */
  async function askEach(
    plans: Plan[],
    askAt: (shard: number, lists: StoreRequest[][]) => Promise<StoreResult[]>,
  ): Promise<StoreResult[][]> {
    const replies = plans.map((): StoreResult[] => [])
    await Promise.all(
      databases.map(async (_, shard) => {
        const askers = plans.flatMap(({ asked }, index) => (asked[shard] ? index : []))
        if (askers.length === 0) return
        const answers = await askAt(
          shard,
          askers.map((index) => plans[index]!.asked[shard]!),
        )
        answers.forEach((answer, n) => {
          replies[askers[n]!]![shard] = answer
        })
      }),
    )
    return replies
  }

  /** Merges the replies of the shards to one list. */
  function merged(
    list: StoreRequest[],
    groups: Group[],
    replies: StoreResult[],
    options: StoreOptions,
  ): StoreResult {
    const all = Object.values(replies)
    const answers = all.filter((reply): reply is StoreReply => !(reply instanceof StoreError))
    const errors = all.filter((reply) => reply instanceof StoreError)
    const conflict = errors.find(({ code }) => code === 'idempotency-conflict')
    const failure = conflict ?? (answers.length > 0 && options.allowPartial ? undefined : errors[0])
    const states = list.map(({ limits }): StoreState[] => limits.map(() => unknown))
    const uncharged: [Cell, StoreState][] = []
    const refused: Group[] = []
    let isPartial = false

    for (const group of groups) {
      const { fragments, isTake, together } = group
      const answered = fragments.flatMap((fragment) => {
        const reply = replies[fragment.shard]!
        return reply instanceof StoreError ? [] : [{ fragment, reply }]
      })
      const silent = fragments.filter(({ shard }) => replies[shard] instanceof StoreError)
      for (const fragment of silent) {
        const error = replies[fragment.shard] as StoreError
        for (const { request, index, limit } of fragment.asks.flatMap(({ cells }) => cells)) {
          states[request]![index] = { ...unknown, unanswered: unansweredOf(limit, fragment, error) }
        }
      }
      const hasRoom = answered.every(({ fragment, reply }) => admits(fragment, reply))
      const passes = !failure && hasRoom
      // A repeated call must find its charges, unless a shard refuses: then it is refused again.
      const keeps = options.idempotency && !conflict && hasRoom && errors.length > 0
      if (isTake && !passes) refused.push(group)
      isPartial ||= passes && fragments.length > 1 && silent.some(({ lead }) => lead)
      for (const { fragment, reply } of answered) {
        const charged = together && admits(fragment, reply)
        const before = [...statesBy(charged ? [fragment.before!] : fragment.asks, reply)]
        if (passes) uncharged.push(...before)
        for (const [cell, state] of passes ? statesBy(fragment.asks, reply) : before) {
          states[cell.request]![cell.index] = passes
            ? { decidedAt: reply.decidedAt, ...state }
            : state
        }
        if (charged && !passes && !keeps) refund(fragment, reply, options)
      }
    }
    if (answers.length > 0 && !options.idempotency) refundLate(refused, replies, options)
    if (failure) {
      // If some shards have answered, the late replies of others are refunded above.
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

  /** Merges late replies if no shard has answered in time. The caller decides whether to refund them. */
  async function mergedLate(
    list: StoreRequest[],
    groups: Group[],
    replies: StoreResult[],
    options: StoreOptions,
  ): Promise<StoreResult> {
    const all = replies.slice() // sparse
    const wait = async (reply: StoreResult, shard: number) => {
      const late = reply instanceof StoreError ? await reply.late : undefined
      if (late) all[shard] = late as StoreResult
    }
    await Promise.all(replies.map(wait))
    return merged(list, groups, all, { ...options, allowPartial: true })
  }

  /** Refunds late charges for requests that have been refused meanwhile. */
  function refundLate(groups: Group[], replies: StoreResult[], options: StoreOptions) {
    for (const fragment of groups.flatMap(({ fragments }) => fragments)) {
      const error = replies[fragment.shard]
      if (!(error instanceof StoreError) || !error.late) continue
      const refunding = error.late.then((reply) => {
        if (reply instanceof StoreError || !admits(fragment, reply as StoreReply)) return
        refund(fragment, reply as StoreReply, options)
      })
      options.waitUntil?.(refunding)
    }
  }

  /** Refunds what a shard has charged. A replay has charged nothing. */
  function refund({ shard, ...fragment }: Fragment, reply: StoreReply, given: StoreOptions) {
    const limits = reply.replayed ? [] : chargedIn(fragment, reply)
    if (limits.length === 0) return
    const { decidedAt } = reply
    const requests = limits.map((limit): Refund => ({ mode: 'refund', limits: [limit], decidedAt }))
    const { idempotency, ...options } = given
    const done = decideAt(shard, requests, { ...options, deadlineMs: REFUND_MS }).then((reply) => {
      const error = reply instanceof StoreError ? reply : undefined
      onRefund([...new Set(limits.map(({ subject }) => subject))], error)
    })
    options.waitUntil?.(done)
  }

  /** Never rejects. An error names its shard. */
  async function decideAt(
    shard: number,
    list: StoreRequest[],
    options: StoreOptions,
  ): Promise<StoreResult> {
    const { name, store } = databases[shard]!
    try {
      return await store.decide(list, named(options, name))
    } catch (error) {
      return asStoreError(error).from(name)
    }
  }

  return {
    async decide(list, options = {}) {
      const one = async (shard: number, [requests]: StoreRequest[][]) => [
        await decideAt(shard, requests!, options),
      ]
      const [reply] = await decideAll([list], one, options)
      if (reply instanceof StoreError) throw reply
      return reply!
    },
    decideEach(lists, options = {}) {
      const each = async (shard: number, lists: StoreRequest[][]) => {
        const { name, store } = databases[shard]!
        const replies = await store.decideEach(lists, named(options, name))
        return replies.map((reply) => (reply instanceof StoreError ? reply.from(name) : reply))
      }
      return decideAll(lists, each, options)
    },
  }
}

/** Each shard has an idempotency key of its own: two may be one database, as in `npm start`, and would replay each other's calls. */
const named = ({ idempotency, ...options }: StoreOptions, name: string): StoreOptions =>
  idempotency
    ? { ...options, idempotency: { ...idempotency, key: `${name}@${idempotency.key}` } }
    : options

/** Why a limit has no answer, and when it was charged if the reply comes late. */
function unansweredOf(limit: Limit, fragment: Fragment, error: StoreError): Unanswered {
  const chargedLate = error.late?.then((late) => {
    const reply = late as StoreResult
    if (reply instanceof StoreError || reply.replayed || !admits(fragment, reply)) return undefined
    return chargedIn(fragment, reply).includes(limit) ? reply.decidedAt : undefined
  })
  return chargedLate ? { error, chargedLate } : { error }
}

const withStates = (states: StoreState[][], changes: [Cell, StoreState][]): StoreState[][] => {
  const copy = states.map((some) => [...some])
  for (const [{ request, index }, state] of changes) copy[request]![index] = state
  return copy
}
