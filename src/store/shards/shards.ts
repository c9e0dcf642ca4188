import { asStoreError, StoreError } from '../../base/errors.ts'
import type {
  Limit,
  Refund,
  Store,
  StoreOptions,
  StoreReply,
  StoreRequest,
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

/** One of the databases that subjects are spread over. */
export interface Database {
  name: string
  store: Store
}

export interface ShardsOptions {
  /** Told when the charges of a request that was refused elsewhere have been given back, or could not be. */
  onRefund?: (subjects: string[], error?: StoreError) => void
}

type Reply = StoreReply | StoreError

/** Nobody waits for it, and what does not come is lost until it runs out. */
const REFUND_MS = 5_000

/** The state of a limit without an answer. */
const unknown: StoreState = {
  allowed: false,
  remaining: 0,
  retryAfterMs: null,
  resetAfterMs: 0,
  nextAfterMs: 0,
}

/**
 * One store of many: each subject has its shard in one of them, by rendezvous hashing over their names. A list of which all limits are in
 * one shard is asked there, in one call, as if there were no other.
 *
 * Else the shards are asked at once. Of a request with limits in several of them each decides its own, all or none; where one refuses what
 * another has charged, that is given back in the background, so that never more passes than the limits allow. Until then others
 * see less than there is. In the same call each shard is asked how the limits stand uncharged: that is told where another refuses.
 */
export function createShards(
  databases: Database[],
  { onRefund = () => {} }: ShardsOptions = {},
): Store {
  const shardOf = rendezvous(databases.map(({ name }) => name))

  /** The one shard of all limits of a list; nothing where there are several. */
  function onlyShardOf(list: StoreRequest[]): number | undefined {
    const shards = new Set(
      list.flatMap(({ limits }) => limits.map(({ subject }) => shardOf(subject))),
    )
    return shards.size === 1 ? [...shards][0] : undefined
  }

  function decideAll(
    lists: StoreRequest[][],
    askAt: (shard: number, lists: StoreRequest[][]) => Promise<Reply[]>,
    options: StoreOptions,
  ): Promise<Reply[]> {
    const plans = lists.map((list) => {
      const shard = onlyShardOf(list)
      return shard === undefined ? split(list, shardOf) : wholeAt(shard, list)
    })
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

  /** Asks each shard once, all at the same time. */
  async function askEach(
    plans: Plan[],
    askAt: (shard: number, lists: StoreRequest[][]) => Promise<Reply[]>,
  ): Promise<Reply[][]> {
    const replies = plans.map((): Reply[] => [])
    await Promise.all(
      databases.map(async (_, shard) => {
        const askers = plans.flatMap(({ asked }, index) => (asked[shard] ? index : []))
        if (askers.length === 0) return
        const told = await askAt(
          shard,
          askers.map((index) => plans[index]!.asked[shard]!),
        )
        askers.forEach((index, n) => {
          replies[index]![shard] = told[n]!
        })
      }),
    )
    return replies
  }

  /** Merges the replies of the shards to one list. */
  function merged(
    list: StoreRequest[],
    groups: Group[],
    replies: Reply[],
    options: StoreOptions,
  ): Reply {
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
      const answered = fragments.flatMap((fragment): Answered[] => {
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
      // A repeated call is to find what was charged for it, unless a shard refuses: then it is refused again.
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
      // Where some shards have answered, the late reply of another is refunded above.
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

  /** Merges the late replies of shards, none of which has answered in time: the caller decides whether they are refunded. */
  async function mergedLate(
    list: StoreRequest[],
    groups: Group[],
    replies: Reply[],
    options: StoreOptions,
  ): Promise<Reply> {
    const all: Reply[] = []
    const wait = async (reply: Reply, shard: number) => {
      const late = reply instanceof StoreError ? await reply.late : undefined
      all[shard] = (late as Reply | undefined) ?? reply
    }
    await Promise.all(replies.map(wait))
    return merged(list, groups, all, { ...options, allowPartial: true })
  }

  /** Refunds what a shard turns out to have charged after its deadline, for a request that was refused meanwhile. */
  function refundLate(groups: Group[], replies: Reply[], options: StoreOptions) {
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

  /** Returns what a shard has charged. A replay has charged nothing. */
  function refund({ shard, ...fragment }: Fragment, reply: StoreReply, given: StoreOptions) {
    const limits = reply.replayed ? [] : chargedIn(fragment, reply)
    if (limits.length === 0) return
    const { decidedAt } = reply
    const requests = limits.map((limit): Refund => ({ mode: 'refund', limits: [limit], decidedAt }))
    const { idempotency, ...options } = given
    const done = decideAt(shard, requests, { ...options, deadlineMs: REFUND_MS }).then((told) => {
      const error = told instanceof StoreError ? told : undefined
      onRefund([...new Set(limits.map(({ subject }) => subject))], error)
    })
    options.waitUntil?.(done)
  }

  /** Errors are values, and say whose they are. */
  async function decideAt(
    shard: number,
    list: StoreRequest[],
    options: StoreOptions,
  ): Promise<Reply> {
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

/** Each shard remembers by a name of its own: two may be one database, as in `npm start`, and know of each other's calls. */
const named = ({ idempotency, ...options }: StoreOptions, name: string): StoreOptions =>
  idempotency
    ? { ...options, idempotency: { ...idempotency, key: `${name}@${idempotency.key}` } }
    : options

/** Why a limit has no answer, and when it was charged if the reply comes late. */
function unansweredOf(limit: Limit, fragment: Fragment, error: StoreError): Unanswered {
  const chargedLate = error.late?.then((late) => {
    const reply = late as Reply
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

interface Answered {
  fragment: Fragment
  reply: StoreReply
}

/** A list that goes to one shard as it is. */
function wholeAt(shard: number, list: StoreRequest[]): Plan {
  const asked: StoreRequest[][] = []
  asked[shard] = list
  return { asked, groups: undefined }
}
