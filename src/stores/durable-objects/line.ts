/** Requests that wait for a limit, on the states of one subject: the state machine of lua/line.lua. */
import { capacityOf } from '../../core/base/units.ts'
import {
  algorithms,
  bucketAt,
  type QuotaTerms,
  windowsAt,
} from '../../core/connection/algorithms/index.ts'
import { ticketOf } from '../../core/connection/line.ts'
import type { Limit, StoreRequest } from '../../core/connection/store.ts'
import { type InRecord, quotaOf } from './charge.ts'
import type { Changes } from './penalty.ts'
import type { KeptState } from './record.ts'

/** So long after its turn a request may ask, ms. */
const GRACE_MS = 500
const MAX_TICKETS = 1_000

export interface Place {
  limit: Limit
  tag: string
  /** When the request came, ms since the epoch. */
  since: number
  ahead: number
  /** ms until its turn; `null` if its cost never fits. */
  turnMs: number | null
  capacity: number
  isFull: boolean
}

export const lineOf = ({ terms: { tag } }: Limit): string => `${tag}-turn-`

/** @param state the state of the limit: that of a log has its live units */
export function placeOf(
  record: ReadonlyMap<string, KeptState>,
  request: StoreRequest,
  limit: Limit,
  state: KeptState | undefined,
  now: number,
): Place {
  const { id, waitedMs, isFull = false } = ticketOf(request)
  const line = lineOf(limit)
  const tag = `${line}${id}`
  const own = record.get(tag)
  const since = own && own.end > now ? own.time : now - waitedMs
  const capacity = capacityOf(limit.terms.algorithm, quotaOf(limit))
  let [ahead, count, isBehind] = [0, 0, false]
  for (const [other, { time, end, numbers }] of record) {
    if (!other.startsWith(line) || end <= now) continue
    count += 1
    isBehind ||= other === tag
    // A request that needs fewer free units, because of its `reserve` or its plan, does not stand behind the others.
    const isEarlier = time < since || (time === since && !isBehind)
    if (isEarlier && numbers[1]! >= capacity) ahead += numbers[0]!
  }
  const turnMs = limit.cost > capacity ? null : turnOf(limit, capacity, ahead, now, state)
  return { limit, tag, since, ahead, turnMs, capacity, isFull: isFull || count >= MAX_TICKETS }
}

/** After how many ms the cost fits, if no other request is charged, besides those ahead. */
function turnOf(
  limit: Limit,
  capacity: number,
  ahead: number,
  now: number,
  state: KeptState | undefined,
): number {
  const { terms, cost } = limit
  const { windowMs } = terms
  const units = ahead + cost
  if (units === 0) return 0
  const quota = quotaOf(limit)
  const algorithm = terms.algorithm as InRecord | 'sliding-log'
  const decide = algorithms[algorithm]
  if (algorithm === 'token-bucket') {
    const [at, missing] = bucketAt(terms, now, state)
    const over = missing + (units - capacity) * windowMs
    return over > 0 ? at - now + Math.ceil(over / terms.limit) : 0
  }
  if (algorithm === 'fixed-window') {
    const { remaining } = decide(now, quota, 0, state)
    const { resetAfterMs } = decide(now, { ...quota, limit: Number.MAX_SAFE_INTEGER }, 1, state)
    const over = units - remaining
    return over > 0 ? resetAfterMs + (Math.ceil(over / capacity) - 1) * windowMs : 0
  }
  if (algorithm === 'sliding-log') {
    // From the second time on that the whole quota is used up, each time takes a window.
    const times = Math.ceil(units / capacity) - 1
    const { retryAfterMs } = decide(now, quota, units - times * capacity, state)
    return retryAfterMs! + times * windowMs
  }
  return slidingTurn(quota, cost, units, now, state)
}

function slidingTurn(
  { limit, windowMs }: QuotaTerms,
  cost: number,
  units: number,
  now: number,
  state: KeptState | undefined,
): number {
  const at = Math.max(now, state?.time ?? now)
  let [opened, current, previous] = windowsAt({ windowMs }, now, state)
  let [turnMs, left] = [at - now, opened + windowMs - at]
  while (previous * left + (current + units) * windowMs > limit * windowMs) {
    const most = limit - Math.ceil(previous / windowMs) // the count at the end of this window
    if (current + units <= most)
      return turnMs + left - Math.floor(((limit - current - units) * windowMs) / previous)
    // The units of earlier requests pass one by one.
    const passed = Math.max(0, Math.min(most - current, units - cost))
    turnMs += left
    left = windowMs
    units -= passed
    previous = current + passed
    current = 0
  }
  return turnMs
}

/** Gives a refused request tickets if only its lines refuse it and its turn is near; otherwise takes them. Such a refusal is not counted. */
export function stand(
  request: StoreRequest,
  places: Place[],
  isAdmitted: boolean,
  onlyLines: boolean,
  now: number,
): { changes: Changes; isNoRefusal: boolean } {
  const changes: Changes = new Map()
  const { leftMs } = ticketOf(request)
  const isNear = places.every(({ turnMs }) => turnMs !== null && turnMs <= leftMs)
  const waits = request.mode === 'take' && !isAdmitted && onlyLines && isNear
  const isFull = places.some((place) => place.isFull)
  for (const { tag, since, turnMs, capacity, limit } of places) {
    const end = now + (turnMs ?? 0) + GRACE_MS
    const keeps = waits && !isFull && turnMs! > 0
    changes.set(tag, keeps ? { time: since, end, numbers: [limit.cost, capacity] } : undefined)
  }
  return { changes, isNoRefusal: waits }
}
