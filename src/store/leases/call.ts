/** What a call asks for the sake of leases beside what it is asked itself, and what of its reply is whose. */

import type { LimitRow, RowState, StoreReply, StoreRequest } from '../store.ts'
import type { Lease, Units } from './lease.ts'

/** What a call of the script takes. */
const MAX_REQUESTS = 128

/** The leases of rows that have one, and how many units of each are under way with other calls. */
export type Leases = Map<LimitRow, { lease: Lease; underWay: number }>

/** What is spent here, and not asked: `at` by the store's time, ms since the epoch; when the call is decided its window may be over. */
export type Lent = Map<LimitRow, Units & { at: number }>

interface Part {
  row: LimitRow
  count: number
}

/** A request of a call. */
export interface Sent {
  request: StoreRequest
  /** Of one that takes units for a lease: how many, and the row of the request before it which is charged for itself. */
  more?: Part
  /** Of one that gives some back: how many, and the row that brought it about. */
  back?: Part
}

/**
 * The requests as they are sent: without what is spent here; after each, for every lease, one that takes more, if the request itself
 * passes; and before them all what is left of earlier leases goes back.
 */
export function callFor(requests: StoreRequest[], leases: Leases, lent: Lent, now: number): Sent[] {
  const back: Sent[] = []
  const asked: Sent[] = []
  let room = MAX_REQUESTS - requests.length
  let taken = false
  for (const request of requests) {
    const rows = request.rows.filter((row) => !lent.has(row))
    if (rows.length === 0) continue
    taken ||= request.mode === 'take'
    // A shadow whose take is not sent, since all of it is spent here, has passed as well.
    asked.push({ request: { ...request, mode: taken ? request.mode : 'take', rows } })
    for (const row of rows) {
      const { lease, underWay = 0 } = leases.get(row) ?? {}
      if (!lease || room < 2) continue
      room -= 2
      const owed = lease.refund(now)
      if (owed) {
        const { count, receipt } = owed
        const rows = [{ ...row, cost: count }]
        back.push({ request: { mode: 'refund', rows, receipt }, back: { row, count } })
      }
      const count = lease.more(row.cost, underWay, now)
      if (count > 0) {
        const rows = [{ ...row, cost: count }]
        asked.push({ request: { mode: 'shadow', rows }, more: { row, count } })
      }
    }
  }
  return [...back, ...asked]
}

/** How each row that was asked stands, and how many units more its lease was charged. */
export function brought(sent: Sent[], reply: StoreReply) {
  const states = new Map<LimitRow, RowState & { more: number }>()
  let passed = true
  sent.forEach(({ request: { mode, rows }, more, back }, index) => {
    const told = reply.requests[index]!
    if (more) {
      const own = states.get(more.row)!
      const [state] = told as [RowState]
      const { allowed, retryAfterMs } = own
      const count = passed && state.allowed ? more.count : 0
      states.set(more.row, { ...state, allowed, retryAfterMs, more: count })
    } else if (!back) {
      rows.forEach((row, at) => void states.set(row, { ...told[at]!, more: 0 }))
      if (mode === 'take') passed = told.every(({ allowed }) => allowed)
    }
  })
  return states
}
