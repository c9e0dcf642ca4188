/** Decides requests to one subject. lua/README.md is the contract: every number equals that of the script. */
import { hasOwnKey } from '../../core/base/units.ts'
import { algorithms, resized, statedBy } from '../../core/connection/algorithms/index.ts'
import { behind, inLine, standsIn } from '../../core/connection/line.ts'
import type { Limit, Penalty, StoreRequest, StoreState } from '../../core/connection/store.ts'
import { owed, quotaOf, refunded, taken } from './charge.ts'
import { lineOf, type Place, placeOf, stand } from './line.ts'
import { owedTimes, refundedTimes } from './log.ts'
import { ban, banRest, type Changes, pardon, refusalCounted } from './penalty.ts'
import { type KeptState, liveState, type Parts } from './record.ts'
import { hasRoom, releasedSlots, slotsState, takenSlots } from './slots.ts'
import { releasedValues, takenValues, valuesOutcome, valuesState } from './values.ts'

type Mode = StoreRequest['mode']

/** A limit in its size in force, and what its charge does. */
interface LimitRow {
  /** Leaves the units of the requests free that stand before this one in its line. */
  limit: Limit
  place: Place | undefined
  penalty: Penalty | undefined
  fits: boolean
  /** The rest of a ban, ms. */
  rest: number
  override: KeptState | undefined
}

/** Decides requests in order, and changes the parts of the subject. A request charges all its limits, or none. @param now ms since the epoch */
export function decideList(
  parts: Parts,
  list: readonly StoreRequest[],
  now: number,
): StoreState[][] {
  const decideOne = deciderAt(parts, now)
  let hasPassed = true // of the last request that is not a follow
  return list.map((request) => {
    const { mode } = request
    const states = decideOne(request, mode === 'follow' ? (hasPassed ? 'take' : 'peek') : mode)
    if (mode !== 'follow') hasPassed = mode === 'take' && states.every(({ allowed }) => allowed)
    return states
  })
}

function deciderAt(parts: Parts, now: number) {
  const live = (tag: string) => liveState(parts.record, tag, now)

  /** Changes states of the record, and drops those that have ended. Changes nothing if a removal finds no state. */
  function apply(changes: Changes) {
    const isChanged = [...changes].some(([tag, state]) => state || parts.record.has(tag))
    if (!isChanged) return
    const record = new Map(parts.record)
    for (const [tag, state] of changes) {
      if (state) record.set(tag, state)
      else record.delete(tag)
    }
    for (const [tag, { end }] of record) if (end <= now) record.delete(tag)
    parts.record = record
  }

  /** The state of a limit without slots. A log ends with its units. */
  function countedOf({ terms: { tag, algorithm } }: Limit) {
    if (algorithm !== 'sliding-log') return live(tag)
    const times = parts.log(tag)
    const newest = times.at(-1)
    return newest === undefined ? undefined : { time: newest, numbers: [...times], end: Infinity }
  }

  function fits(limit: Limit): boolean {
    const { algorithm, tag } = limit.terms
    if (algorithm === 'concurrency') return hasRoom(parts.slots(tag), limit, now)
    if (algorithm === 'distinct') return valuesOutcome(parts.slots(tag), limit, now).allowed
    return algorithms[algorithm](now, quotaOf(limit), limit.cost, countedOf(limit)).allowed
  }

  /** Applies the mode of an operator. Afterwards its request is decided like a peek. */
  function operate(request: StoreRequest) {
    const { mode } = request
    const set = (tag: string, state?: KeptState) => apply(new Map([[tag, state]]))
    for (const limit of request.limits) {
      const { terms, penalty, override } = limit
      const { tag, algorithm } = terms
      if (override && mode === 'override') {
        const { units, forMs } = request
        set(`${tag}-limit`, { time: now, end: now + forMs, numbers: [units] })
      }
      if (override && mode === 'restore') set(`${tag}-limit`)
      if (mode === 'reset') {
        if (algorithm === 'sliding-log') parts.setLog(tag, [], 0)
        else if (hasOwnKey(algorithm)) parts.setSlots(tag, [], 0)
        else set(tag)
        const line = lineOf(limit)
        for (const other of parts.record.keys()) if (other.startsWith(line)) set(other)
      }
      if (penalty && mode === 'ban') apply(ban(penalty, request.banMs ?? penalty.banMs, now))
      if (penalty && (mode === 'reset' || mode === 'unban')) apply(pardon(penalty))
    }
  }

  /** Gives the request its tickets, or takes them away. @returns false if a refusal is not counted */
  function lineUp(request: StoreRequest, rows: LimitRow[], isAdmitted: boolean): boolean {
    const places = rows.flatMap(({ place }) => place ?? [])
    if (places.length === 0 || request.mode === 'peek') return true
    const onlyLines = rows.every(({ place, fits, rest }) => (place || fits) && rest === 0)
    const { changes, isNoRefusal } = stand(request, places, isAdmitted, onlyLines, now)
    apply(changes)
    return !isNoRefusal
  }

  /** Charges one limit, or refunds it. Changes of the record are collected, those of logs and slots are made at once. */
  function charge(request: StoreRequest, limit: Limit, mode: Mode, changes: Changes) {
    const { tag, algorithm, windowMs } = limit.terms
    const decidedAt = request.mode === 'refund' ? request.decidedAt : undefined
    const isRefund = mode === 'refund'
    if (limit.cost === 0) return
    if (algorithm === 'concurrency') {
      const slots = parts.slots(tag)
      const after = isRefund ? releasedSlots(slots, limit) : takenSlots(slots, limit, now)
      if (after) parts.setSlots(tag, after, Math.max(0, ...after.map(({ end }) => end)))
    } else if (algorithm === 'distinct') {
      const uses = parts.slots(tag)
      const after = isRefund
        ? releasedValues(uses, limit, now, decidedAt)
        : takenValues(uses, limit, now)
      if (after) parts.setSlots(tag, after, Math.ceil(after.at(-1)?.end ?? 0) + windowMs)
    } else if (algorithm === 'sliding-log') {
      const times = parts.log(tag)
      const after = isRefund
        ? refundedTimes(limit, now, times, decidedAt)
        : owedTimes(limit, now, times)
      if (after) parts.setLog(tag, after, (after.at(-1) ?? 0) + windowMs)
    } else {
      const change = mode === 'debt' ? owed : taken
      const after = isRefund
        ? refunded(limit, now, live(tag), decidedAt)
        : change(limit, now, live(tag))
      if (after) changes.set(tag, after === 'none' ? undefined : after)
    }
  }

  /** The state of a limit in the reply: that after the charge. */
  function stateOf({ limit, place, penalty, fits, rest, override }: LimitRow): StoreState {
    const own = numbersOf(limit, fits)
    const numbers = place ? inLine(place.limit, { ...own, allowed: fits }, place.turnMs) : own
    const retryAfterMs = fits ? 0 : numbers.retryAfterMs
    return {
      ...numbers,
      allowed: fits && rest === 0,
      retryAfterMs: retryAfterMs === null ? null : Math.max(retryAfterMs, rest),
      ...(penalty && rest > 0 && { bannedForMs: rest }),
      ...(override && { limit: override.numbers[0]!, overriddenForMs: override.end - now }),
    }
  }

  function numbersOf(limit: Limit, fits: boolean) {
    const { algorithm, tag } = limit.terms
    if (algorithm === 'concurrency') return slotsState(parts.slots(tag), limit, now)
    if (algorithm === 'distinct') return valuesState(parts.slots(tag), limit, fits, now)
    return statedBy(limit, now, fits, countedOf(limit))
  }

  return (request: StoreRequest, mode: Mode): StoreState[] => {
    operate(request)
    const isSettled = mode === 'refund' || mode === 'debt'
    const rows = request.limits.map((given): LimitRow => {
      const override = given.override && live(`${given.terms.tag}-limit`)
      const sized = resized(given, override?.numbers[0])
      const place = standsIn(request, sized)
        ? placeOf(parts.record, request, sized, countedOf(sized), now)
        : undefined
      const limit = place ? behind(sized, place.ahead) : sized
      const penalty = isSettled ? undefined : limit.penalty
      const rest = penalty ? banRest(parts.record, penalty, now) : 0
      return { limit, place, penalty, fits: isSettled || fits(limit), rest, override }
    })
    const isAdmitted = rows.every(({ fits, rest }) => fits && rest === 0)
    const isCounted = lineUp(request, rows, isAdmitted)
    // The waits of a refused limit are those before a charge, and equal those after it: then nothing is charged.
    if (isSettled || (mode === 'take' && isAdmitted)) {
      const changes: Changes = new Map()
      for (const { limit } of rows) charge(request, limit, mode, changes)
      apply(changes)
    } else if (mode === 'take' && isCounted) {
      for (const row of rows) {
        const { penalty, fits, rest } = row
        if (!penalty || fits || rest > 0) continue // a refusal during a ban does not count
        apply(refusalCounted(parts.record, penalty, now))
        row.rest = banRest(parts.record, penalty, now)
      }
    }
    return rows.map(stateOf)
  }
}
