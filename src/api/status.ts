import type { LimitStatus } from '../base/decision.ts'
import { StoreError } from '../base/errors.ts'
import type { LimiterParts } from '../limiter/decide.ts'
import { limitStates, type Row, rowOf } from '../limiter/limit.ts'
import { isMet } from '../match/match.ts'
import type { StoreOptions, StoreReply, StoreRequest } from '../store/store.ts'
import type { Call } from './call.ts'
import { usedBefore } from './idempotency.ts'
import { storeFailed } from './problems.ts'
import { readAsking } from './questions.ts'
import { type Refund, refundBody } from './schema.ts'

/** Nobody's request waits for it. */
export const DEADLINE_MS = 5_000

/** Rows as they stand after a call. */
export const status = (rows: Row[], { now, requests }: StoreReply): LimitStatus => ({
  at: now,
  limits: limitStates(rows, requests.flat()),
})

/** `POST /_sluice/v1/refund`: returns what was taken, or part of it, of each policy; slots by their id. */
export async function refund(call: Call): Promise<Response> {
  const asking = await readAsking<Refund>(call, refundBody)
  if (asking instanceof Response) return asking
  const { many, described, once } = asking

  const lists = await Promise.all(
    described.map(async ({ asked, description }) => {
      const met = description.policies.filter(isMet)
      const rows = await Promise.all(
        met.map((one) => rowOf(one, asked.slot, call.parts.nameSubject)),
      )
      return { rows, requests: rows.map((row) => requestFor(row, asked)) }
    }),
  )
  const some = lists.filter(({ rows }) => rows.length > 0)
  const { waitUntil } = call.around
  const options = { deadlineMs: DEADLINE_MS, waitUntil, ...(once && { once }) }
  const replies = await repliesTo(
    some.map(({ requests }) => requests),
    call.parts,
    options,
  )
  if (replies instanceof Response) return replies
  const standings = lists.map((list): LimitStatus => {
    const reply = replies[some.indexOf(list)]
    return reply ? status(list.rows, reply) : { limits: [] }
  })
  const replayed = replies.some(({ replayed }) => replayed)
  return Response.json(many ? standings : standings[0], {
    headers: {
      'Cache-Control': 'no-store',
      ...(replayed && { 'Idempotent-Replayed': 'true' }),
    },
  })
}

/** Each row by itself: what one policy gets back is no matter of another. */
function requestFor(row: Row, { at }: Refund): StoreRequest {
  if (row.policy.algorithm === 'concurrency') {
    // Slots that nobody names cannot be given back; those of an id go together, whatever a price says.
    if (row.slot === undefined) return { mode: 'peek', rows: [row] }
    return { mode: 'refund', rows: [{ ...row, cost: Math.max(1, row.cost) }] }
  }
  return { mode: 'refund', rows: [row], ...(at !== undefined && { receipt: at }) }
}

/** What the store says to each list; or, where it fails for one of them, why. */
export async function repliesTo(
  lists: StoreRequest[][],
  { store, denialCache, onStoreError }: LimiterParts,
  options: StoreOptions & Required<Pick<StoreOptions, 'waitUntil'>>,
): Promise<StoreReply[] | Response> {
  if (lists.length === 0) return []
  const asked = store.decideEach(lists, options).then((replies) => {
    denialCache?.forget(Date.now()) // quotas may be better now, also where no reply came
    return replies
  })
  options.waitUntil(asked) // and where whoever called has hung up
  const replies = await asked
  const failed = replies.find((reply) => reply instanceof StoreError)
  if (!failed) return replies as StoreReply[]
  if (failed.code === 'idempotency-conflict') return usedBefore()
  onStoreError(failed)
  return storeFailed(failed)
}
