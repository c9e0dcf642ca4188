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

/** The reply to each list, or the reason why nothing was decided. */
export type ObjectAnswer = { replies: StoreReply[] } | { refused: 'idempotency-conflict' }

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
