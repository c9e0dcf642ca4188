import { asStoreError, StoreError } from '../../base/errors.ts'
import type { RowState, Store, StoreOptions, StoreReply, StoreRequest } from '../store.ts'
import { rendezvous } from './rendezvous.ts'
import { admits, chargedIn, type Group, type Plan, type Share, shareOut, toldOf } from './split.ts'

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
const GIVE_BACK_MS = 5_000

/** Of a row that nobody has answered. */
const unknown: RowState = {
  allowed: false,
  remaining: 0,
  retryAfterMs: null,
  resetAfterMs: 0,
  nextAfterMs: 0,
}

/**
 * One store of many: each subject has its place in one of them, by rendezvous hashing over their names. A list of which all rows are in
 * one place is asked there, in one call, as if there were no other.
 *
 * Else the places are asked at once. Of a request with rows in several of them each decides its own, all or none; where one refuses what
 * another has charged, that is given back in the background, so that never more passes than the limits allow. Until then others
 * see less than there is. In the same call each place is asked how the rows stand uncharged: that is told where another refuses.
 */
export function createShards(
  databases: Database[],
  { onRefund = () => {} }: ShardsOptions = {},
): Store {
  const placeOf = rendezvous(databases.map(({ name }) => name))

  /** The one place of all rows of a list; nothing where there are several. */
  function onlyPlaceOf(list: StoreRequest[]): number | undefined {
    const places = new Set(list.flatMap(({ rows }) => rows.map(({ subject }) => placeOf(subject))))
    return places.size === 1 ? [...places][0] : undefined
  }

  function decideAll(
    lists: StoreRequest[][],
    askAt: (place: number, lists: StoreRequest[][]) => Promise<Reply[]>,
    options: StoreOptions,
  ): Promise<Reply[]> {
    const plans = lists.map((list) => {
      const place = onlyPlaceOf(list)
      return place === undefined ? shareOut(list, placeOf) : wholeAt(place, list)
    })
    const decided = askEach(plans, askAt).then((replies) =>
      Promise.all(
        plans.map(({ groups }, index) => {
          const all = replies[index]!
          return groups ? merged(lists[index]!, groups, all, options, index) : all.find(Boolean)!
        }),
      ),
    )
    // What one has charged in vain is to be given back though the client be gone: else hanging up would spend what others refuse.
    if (plans.some(({ groups }) => groups)) options.waitUntil?.(decided)
    return decided
  }

  /** Asks each place once, all at the same time. */
  async function askEach(
    plans: Plan[],
    askAt: (place: number, lists: StoreRequest[][]) => Promise<Reply[]>,
  ): Promise<Reply[][]> {
    const replies = plans.map((): Reply[] => [])
    await Promise.all(
      databases.map(async (_, place) => {
        const askers = plans.flatMap(({ asked }, index) => (asked[place] ? index : []))
        if (askers.length === 0) return
        const told = await askAt(
          place,
          askers.map((index) => plans[index]!.asked[place]!),
        )
        askers.forEach((index, n) => {
          replies[index]![place] = told[n]!
        })
      }),
    )
    return replies
  }

  /** Makes one reply of what the places say to a list. */
  async function merged(
    list: StoreRequest[],
    groups: Group[],
    replies: Reply[],
    options: StoreOptions,
    index: number,
  ): Promise<Reply> {
    const all = Object.values(replies)
    const answers = all.filter((reply): reply is StoreReply => !(reply instanceof StoreError))
    const errors = all.filter((reply) => reply instanceof StoreError)
    const conflict = errors.find(({ code }) => code === 'idempotency-conflict')
    // Whoever cannot do with a part of the answer has none.
    const partial = answers.length > 0 && options.unanswered
    const failure = conflict ?? (partial ? undefined : errors[0])
    const requests = list.map(({ rows }) => rows.map(() => unknown))
    const refused: Group[] = []

    for (const group of groups) {
      const { shares, together } = group
      const answered = shares.flatMap((share): Answered[] => {
        const reply = replies[share.place]!
        return reply instanceof StoreError ? [] : [{ share, reply }]
      })
      const silent = shares.filter(({ place }) => replies[place] instanceof StoreError)
      for (const { asks, place } of silent) {
        const row = { ...unknown, unanswered: replies[place] as StoreError }
        for (const { request, index } of asks.flatMap(({ cells }) => cells)) {
          requests[request]![index] = row
        }
      }
      const unsure = silent.flatMap(({ lead }) => lead?.cells.map(({ row }) => row) ?? [])
      const hasRoom = answered.every(({ share, reply }) => admits(share, reply))
      const passes =
        !failure &&
        hasRoom &&
        (shares.length === 1 || unsure.length === 0 || (await options.unanswered!(unsure, index)))
      // Who repeats a call that somebody has not answered is to find what was taken for it; but where one refuses it is refused again.
      const keeps = options.once && !conflict && hasRoom && errors.length > 0
      if (!passes) refused.push(group)
      for (const { share, reply } of answered) {
        const inVain = together && !passes && admits(share, reply)
        for (const [cell, state] of toldOf(inVain ? [share.before!] : share.asks, reply)) {
          requests[cell.request]![cell.index] = passes ? { at: reply.now, ...state } : state
        }
        if (inVain && !keeps) refund(share, reply, options)
      }
    }
    if (answers.length > 0 && !options.once) refundLate(refused, replies, options)
    if (failure) {
      // Where some have answered, the late reply of another is refunded above.
      const isLate = answers.length === 0 && errors.some(({ late }) => late)
      const late = isLate ? mergedLate(list, groups, replies, options, index) : undefined
      return new StoreError(failure.code, failure.cause as string, failure.store, late)
    }
    const replayed = answers.every(({ replayed }) => replayed) && { replayed: true as const }
    const leased = answers.some(({ leased }) => leased) && { leased: true as const }
    return { now: Math.min(...answers.map(({ now }) => now)), requests, ...replayed, ...leased }
  }

  /** Merges the late replies of places, none of which has answered in time: the caller decides whether they are refunded. */
  async function mergedLate(
    list: StoreRequest[],
    groups: Group[],
    replies: Reply[],
    options: StoreOptions,
    index: number,
  ): Promise<Reply> {
    const all: Reply[] = []
    const wait = async (reply: Reply, place: number) => {
      const late = reply instanceof StoreError ? await reply.late : undefined
      all[place] = (late as Reply | undefined) ?? reply
    }
    await Promise.all(replies.map(wait))
    return merged(list, groups, all, { ...options, unanswered: async () => true }, index)
  }

  /** Refunds what a place turns out to have charged after its deadline, for a request that was refused meanwhile. */
  function refundLate(groups: Group[], replies: Reply[], options: StoreOptions) {
    for (const share of groups.flatMap(({ shares }) => shares)) {
      const error = replies[share.place]
      if (!(error instanceof StoreError) || !error.late) continue
      const refunding = error.late.then((reply) => {
        if (reply instanceof StoreError || !admits(share, reply as StoreReply)) return
        refund(share, reply as StoreReply, options)
      })
      options.waitUntil?.(refunding)
    }
  }

  /** Returns what a place has charged. A replay has charged nothing. */
  function refund({ place, ...share }: Share, reply: StoreReply, given: StoreOptions) {
    const rows = reply.replayed ? [] : chargedIn(share, reply)
    if (rows.length === 0) return
    const receipt = reply.now
    const requests = rows.map((row): StoreRequest => ({ mode: 'refund', rows: [row], receipt }))
    const { once, unanswered, ...options } = given
    const done = decideAt(place, requests, { ...options, deadlineMs: GIVE_BACK_MS }).then(
      (told) => {
        const error = told instanceof StoreError ? told : undefined
        onRefund([...new Set(rows.map(({ subject }) => subject))], error)
      },
    )
    options.waitUntil?.(done)
  }

  /** Errors are values, and say whose they are. */
  async function decideAt(
    place: number,
    list: StoreRequest[],
    options: StoreOptions,
  ): Promise<Reply> {
    const { name, store } = databases[place]!
    try {
      return await store.decide(list, named(options, name))
    } catch (error) {
      return asStoreError(error).from(name)
    }
  }

  return {
    async decide(list, options = {}) {
      const one = async (place: number, [requests]: StoreRequest[][]) => [
        await decideAt(place, requests!, options),
      ]
      const [reply] = await decideAll([list], one, options)
      if (reply instanceof StoreError) throw reply
      return reply!
    },
    decideEach(lists, options = {}) {
      const each = async (place: number, lists: StoreRequest[][]) => {
        const { name, store } = databases[place]!
        const replies = await store.decideEach(lists, named(options, name))
        return replies.map((reply) => (reply instanceof StoreError ? reply.from(name) : reply))
      }
      return decideAll(lists, each, options)
    },
  }
}

/** Each place remembers by a name of its own: two may be one database, as in `npm start`, and know of each other's calls. */
const named = ({ once, ...options }: StoreOptions, name: string): StoreOptions =>
  once ? { ...options, once: { ...once, key: `${name}@${once.key}` } } : options

interface Answered {
  share: Share
  reply: StoreReply
}

/** A list that goes to one place as it is. */
function wholeAt(place: number, list: StoreRequest[]): Plan {
  const asked: StoreRequest[][] = []
  asked[place] = list
  return { asked, groups: undefined }
}
