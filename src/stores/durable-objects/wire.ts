/** The messages between a Worker and the object of a subject: JSON, in one fetch. */
import type { Idempotency, Limit, StoreReply, StoreRequest } from '../../core/connection/store.ts'

/** Lists of requests that an object decides in order. */
export interface ObjectCall {
  /** Repeated calls with the same id are charged once. */
  id: string
  lists: StoreRequest[][]
  /** ms since the epoch; absent for the clock of the object. */
  now?: number | undefined
  idempotency?: Idempotency | undefined
}

export type ObjectAnswer = { replies: StoreReply[] } | { refused: 'idempotency-conflict' }

/** True if a JSON value is the answer of an object to these lists: the binding may be that of another class. */
export function isAnswer(value: unknown, lists: StoreRequest[][]): value is ObjectAnswer {
  const { replies, refused } = Object(value)
  if (refused === 'idempotency-conflict') return true
  return fits(replies, lists, (reply, list) => {
    const { decidedAt, states } = Object(reply)
    return (
      Number.isSafeInteger(decidedAt) &&
      fits(states, list, (some, { limits }) =>
        fits(some, limits, (state) => Number.isSafeInteger(Object(state).remaining)),
      )
    )
  })
}

const fits = <T>(some: unknown, sent: T[], fit: (one: unknown, of: T) => boolean): boolean =>
  Array.isArray(some) &&
  some.length === sent.length &&
  sent.every((of, index) => fit(some[index], of))

/** A limit without what an object does not need: its subject, and the terms for the Worker. */
const sent = ({ subject: _, terms, ...limit }: Limit) => {
  const { localShare: __, lease: ___, ...own } = terms
  return { ...limit, terms: own }
}

export const written = ({ lists, ...call }: ObjectCall): string =>
  JSON.stringify({
    ...call,
    lists: lists.map((list) =>
      list.map((request) => ({ ...request, limits: request.limits.map(sent) })),
    ),
  })
