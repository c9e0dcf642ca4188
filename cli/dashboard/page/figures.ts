/** What the page shows of the counts. */
import { type DecisionOutcome, outcomes } from '../../../src/features/observe/event.ts'
import type { Histogram, Series, Stats } from '../../../src/features/observe/report.ts'

export const SLOT_MS = 10_000
/** The chart shows this many slots: 10 minutes. */
const SLOTS = 60
/** The present rate is that of the last minute. */
const RATE_MS = 60_000
/** Fewer decisions say nothing about a month. */
const LEAST_FOR_A_BILL = 100
const MONTH_S = 30 * 24 * 60 * 60
/** Upstash, pay as you go. */
const DOLLARS_PER_COMMAND = 0.2 / 100_000

export const refusals: readonly ClientOutcome[] = ['limited', 'banned', 'denied', 'shielded']

/** Requests of `sluice verify` are no client's. */
export type ClientOutcome = Exclude<DecisionOutcome, 'verified'>
export type ByOutcome = Record<ClientOutcome, number>

const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
export const ofClients: readonly ClientOutcome[] = outcomes.filter(
  (outcome) => outcome !== 'verified',
)
const noDecisions = () => Object.fromEntries(ofClients.map((outcome) => [outcome, 0])) as ByOutcome

export const decisionsIn = (counts: ByOutcome): number => sum(Object.values(counts))
export const refusedIn = (counts: ByOutcome): number => sum(refusals.map((one) => counts[one]))

/** The decisions of a list of series by outcome. */
export function byOutcome(series: Series[]): ByOutcome {
  const counts = noDecisions()
  for (const { outcome, decisions } of series) {
    if (outcome !== 'verified' && outcome in counts) counts[outcome] += decisions
  }
  return counts
}

/** The decisions by policy and outcome, most decisions first. */
export function byPolicy(series: Series[]): { policy: string; counts: ByOutcome }[] {
  return [...Map.groupBy(series, ({ policy }) => policy)]
    .map(([policy, own]) => ({ policy, counts: byOutcome(own) }))
    .filter(({ counts }) => decisionsIn(counts) > 0)
    .sort((a, b) => decisionsIn(b.counts) - decisionsIn(a.counts))
}

/** The upper bound of the bucket with this quantile, ms: `Infinity` in the last bucket, `undefined` without a duration. */
export function quantile({ bounds, counts }: Histogram, q: number): number | undefined {
  const total = sum(counts)
  if (total === 0) return undefined
  let below = 0
  const bucket = counts.findIndex((count) => {
    below += count
    return below >= q * total
  })
  return bounds[bucket] ?? Number.POSITIVE_INFINITY
}

export interface Rates {
  /** Requests a second, in the last minute. */
  perSecond: number
  /** The share of the requests of the last minute that were refused. */
  refused: number
  /** HTTP calls for a request, since the counts begin. `undefined` without a request. */
  calls: number | undefined
  /** Billed commands for a request, since the counts begin. `undefined` without a request. */
  commands: number | undefined
  /**
   * The price of a month of 30 days at the present rate, dollars. `undefined` in the first minute, with few requests, and for a store
   * that bills no commands.
   */
  dollarsAMonth: number | undefined
}

/** The price of a month of 30 days at a rate of billed commands a second. */
export const dollarsAMonth = (commandsPerSecond: number): number =>
  commandsPerSecond * MONTH_S * DOLLARS_PER_COMMAND

export function rates({ now, total, slots }: Stats): Rates {
  const from = Math.floor((now - RATE_MS) / SLOT_MS) * SLOT_MS
  const recent = byOutcome(slots.filter((one) => one.from >= from).flatMap(({ series }) => series))
  // Also in the first minute: an isolate of three seconds has no minute to extrapolate.
  const perSecond = decisionsIn(recent) / ((now - from) / 1000)
  const { store, series } = total
  // The calls for requests of `sluice verify` are in the sums, too.
  const decisions = sum(series.map((one) => one.decisions))
  const each = (whole: number, ofOperators = 0) =>
    decisions > 0 ? (whole - ofOperators) / decisions : undefined
  const commands = each(store.billedCommands, store.operators?.billedCommands)
  const isEnough = decisions >= LEAST_FOR_A_BILL && now - total.from >= RATE_MS
  return {
    perSecond,
    refused: refusedIn(recent) / (decisionsIn(recent) || 1),
    calls: each(store.calls, store.operators?.calls),
    commands,
    dollarsAMonth: commands && isEnough ? dollarsAMonth(perSecond * commands) : undefined,
  }
}

/**
 * The decisions of the last 10 minutes in slots of 10 s, with zeros for the slots without one.
 * @param policy only decisions of this policy
 */
export function timeline({ now, slots }: Stats, policy?: string) {
  const last = Math.floor(now / SLOT_MS) * SLOT_MS
  const starts = Array.from({ length: SLOTS }, (_, n) => last - (SLOTS - 1 - n) * SLOT_MS)
  const counts = starts.map((start) => {
    const own = slots.filter(({ from }) => Math.floor(from / SLOT_MS) * SLOT_MS === start)
    const series = own.flatMap((slot) => slot.series)
    return byOutcome(series.filter((one) => policy === undefined || one.policy === policy))
  })
  return { times: starts.map((start) => start / 1000), counts }
}
