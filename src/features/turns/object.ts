/** Requests that may wait, on the states of one subject: the state machine of lua/waits.lua. */
import { resized, statedBy } from '../../core/connection/algorithms/index.ts'
import type { Limit, StoreRequest, StoreState } from '../../core/connection/store.ts'
import { decideList, decideOne } from '../../stores/durable-objects/decide.ts'
import { liveState, type Parts } from '../../stores/durable-objects/record.ts'
import { charge, earliest, lineState, setState, stateAt } from './places.ts'
import { longestWait, mayWait, placed, waits } from './waits.ts'

/** Decides a list as `decideList` does. Requests that may wait get places. */
export const decideWaits = (
  parts: Parts,
  list: readonly StoreRequest[],
  now: number,
): StoreState[][] =>
  decideList(parts, list, now, (_, request, mode) =>
    mayWait(request) ? takeTurn(parts, request.limits, now) : decideOne(parts, request, mode, now),
  )

/** The time at which a limit has room, after the last place that was given. `null` if it never has. */
function placeOf(parts: Parts, limit: Limit, now: number): number | null {
  const line = lineOf(limit)
  const last = line === undefined ? now : (liveState(parts.record, line, now)?.time ?? now)
  const at = earliest(parts, limit, now)
  return at === undefined ? null : Math.max(at, last)
}

const lineOf = ({ terms: { tag, algorithm } }: Limit) =>
  algorithm === 'sliding-log' ? undefined : `${tag}-turn`

function takeTurn(parts: Parts, limits: Limit[], now: number): StoreState[] {
  const wait = longestWait(limits)
  const sized = limits.map((limit) => {
    const override = limit.override && liveState(parts.record, `${limit.terms.tag}-limit`, now)
    return resized(limit, override?.numbers[0])
  })
  const own = sized.map((limit) => (waits(limit) ? placeOf(parts, limit, now) : now))
  const place = own.includes(null) ? null : Math.max(...own.map(Number))
  const isLate = place === null || place > now + wait
  /** The place of each limit: a refusal is that of the limits whose own place is too late. */
  const places = isLate ? own : own.map(() => place)
  const fits = (at: number | null): at is number => at !== null && at <= now + wait

  // The limits that wait charge nothing here: they fit or not by their place.
  const others = limits.map((limit, index) => ({
    ...limit,
    cost: waits(limit) ? (fits(places[index]!) ? 0 : Number.MAX_SAFE_INTEGER) : limit.cost,
  }))
  const states = decideList(parts, [{ mode: 'take', limits: others }], now)[0]!
  const isTaken = states.every(({ allowed }) => allowed)
  if (isTaken) {
    const before = parts.record
    for (const limit of sized.filter(waits)) {
      charge(parts, limit, place!)
      const line = lineOf(limit)
      if (line && place! > now) setState(parts, line, lineState(place!))
    }
    if (parts.record !== before)
      parts.record = new Map([...parts.record].filter(([, { end }]) => end > now))
  }
  return states.map((state, index) => {
    const limit = sized[index]!
    if (!waits(limit)) return state
    const at = places[index]!
    const from = fits(at) ? at : now
    return placed(stated(parts, state, limit, from, now), limit, at, now, wait, isTaken)
  })
}

/** The state of a limit that waits, from its place. */
function stated(parts: Parts, state: StoreState, limit: Limit, at: number, now: number) {
  const { bannedForMs, allowed } = state
  const isLog = limit.terms.algorithm === 'sliding-log'
  const fits = allowed || bannedForMs !== undefined
  const stored = stateAt(parts, limit, at)
  // Of a log, waits count from the place on.
  const numbers = statedBy(
    limit,
    isLog ? at : now,
    fits,
    isLog && stored ? { ...stored, end: Number.POSITIVE_INFINITY } : stored,
  )
  const retryAfterMs = allowed ? 0 : Math.max(numbers.retryAfterMs ?? 0, bannedForMs ?? 0)
  return { ...state, ...numbers, allowed, retryAfterMs }
}
