/** Turns on the states of one subject in memory, for Durable Objects and for `onStoreError: 'local'`. It decides as lua/turns.lua does. */
import { algorithms, capacityOf, withFloor } from '../../core/connection/algorithms/index.ts'
import type { Limit } from '../../core/connection/store.ts'
import { type InRecord, owed, quotaOf } from '../../stores/durable-objects/charge.ts'
import { liveState, type Parts } from '../../stores/durable-objects/record.ts'
import { charge, earliest, lineState, setState, stateAt } from './places.ts'
import type { Turn, TurnAsk, TurnReport } from './turn-store.ts'

/** Gives a turn, or takes over what the other side has reported. */
export function turnOf(parts: Parts, ask: TurnAsk | TurnReport, line: string, now: number): Turn {
  return ask.do === 'learn' ? learnt(parts, ask, line, now) : asked(parts, ask, line, now)
}

function asked(parts: Parts, ask: TurnAsk, line: string, now: number): Turn {
  const { lineEnd, coolUntil } = lineOf(parts, line, now)
  const limits = ask.limits.map((limit) => inForce(parts, limit, now))
  const rates = limits.filter(({ terms }) => terms.algorithm !== 'concurrency')
  const slots = limits.filter(({ terms }) => terms.algorithm === 'concurrency')

  let place = slots.every(({ cost, terms }) => cost <= terms.limit)
    ? Math.max(now, lineEnd)
    : undefined
  for (const limit of rates) {
    const at = earliest(parts, limit, now)
    place = place === undefined || at === undefined ? undefined : Math.max(place, at)
  }
  const isRefused = place === undefined || place > now + ask.waitMs

  let ahead = 0
  for (const { terms, slot = '', cost } of slots) {
    const { tag, limit, windowMs } = terms
    const list = parts.slots(tag).filter(({ end }) => end > now)
    const own = list.findIndex(({ id }) => id === slot)
    const before = list.slice(0, own < 0 ? list.length : own)
    ahead = Math.max(ahead, before.reduce((sum, { count }) => sum + count, 0) + cost - limit)
    if (ask.do === 'peek') continue
    if (own >= 0 && isRefused) {
      const others = list.filter(({ id }) => id !== slot)
      parts.setSlots(tag, others, Math.max(0, ...others.map(({ end }) => end)))
    } else if (own < 0 && !isRefused) {
      const end = Math.max(now + windowMs + ask.holdMs, (list.at(-1)?.end ?? 0) + 1)
      parts.setSlots(tag, [...list, { id: slot, end, count: cost }], end)
    }
  }

  const turn = { now, place: place ?? null, ahead, coolMs: coolUntil - now, left: [] as number[] }
  if (ask.do === 'peek' || place === undefined || isRefused || ahead > 0) return turn
  for (const limit of rates) charge(parts, limit, place)
  setState(parts, line, lineState(place, coolUntil))
  drop(parts, now)
  return { ...turn, left: rates.map((limit) => Math.max(0, leftAt(parts, limit, place))) }
}

function learnt(parts: Parts, report: TurnReport, line: string, now: number): Turn {
  const { lineEnd, coolUntil: before } = lineOf(parts, line, now)
  const coolUntil = Math.max(before, now + report.coolMs)
  for (const { tag, limit, forMs } of report.lowered) {
    setState(parts, `${tag}-limit`, { time: now, end: now + forMs, numbers: [limit] })
  }
  // What is left is that of the lowered limits.
  const limits = report.limits.map((limit) => inForce(parts, limit, now))
  for (const limit of limits) {
    const { terms, cost: reported } = limit
    const { algorithm, tag, windowMs } = terms
    const time = liveState(parts.record, tag, now)?.time
    const at = Math.max(now, time ?? now)
    let known = reported
    let isKnown = at === now && (time ?? 0) <= report.sentAt
    if (algorithm === 'token-bucket') {
      known += Math.ceil(((at - report.sentAt) * terms.limit) / windowMs)
      isKnown = true
    } else if (algorithm === 'sliding-log') isKnown = lineEnd <= now
    const cost = leftAt(parts, limit, at) - known
    if (isKnown && cost > 0) charge(parts, { ...limit, cost }, at, owed)
  }
  if (coolUntil > now) setState(parts, line, lineState(Math.max(lineEnd, coolUntil), coolUntil))
  drop(parts, now)
  return { now, place: Math.max(lineEnd, coolUntil), ahead: 0, coolMs: coolUntil - now, left: [] }
}

/** The end of the line, before which there is no place, and the end of a cooldown. */
function lineOf(parts: Parts, line: string, now: number) {
  const state = liveState(parts.record, line, now)
  return {
    lineEnd: Math.max(now, state?.time ?? now),
    coolUntil: Math.max(now, state?.numbers[0] ?? now),
  }
}

/** A limit in the size that the other side has reported, if it is lower. */
function inForce(parts: Parts, limit: Limit, now: number): Limit {
  const { terms, floor, ...rest } = limit
  const sized = withFloor(terms.algorithm, terms, floor)
  const reported = liveState(parts.record, `${terms.tag}-limit`, now)?.numbers[0]
  if (reported === undefined || reported >= sized.limit) return { ...rest, terms: sized }
  const capacity = capacityOf(terms.algorithm, sized)
  const burst = Math.max(1, Math.floor((capacity * reported) / sized.limit))
  return { ...rest, terms: { ...sized, limit: reported, burst } }
}

function leftAt(parts: Parts, limit: Limit, at: number): number {
  const decide = algorithms[limit.terms.algorithm as InRecord | 'sliding-log']
  return decide(at, quotaOf(limit), 0, stateAt(parts, limit, at)).remaining
}

/** Drops the states that have ended. */
function drop(parts: Parts, now: number) {
  parts.record = new Map([...parts.record].filter(([, { end }]) => end > now))
}
