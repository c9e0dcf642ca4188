/** What the page shows of the counts. */
import { type DecisionOutcome, outcomes } from '../../../src/features/observe/event.ts'
import {
  type Histogram,
  lastMinute,
  type Series,
  type Stats,
} from '../../../src/features/observe/report.ts'
import { type Range, ranges } from '../ranges.ts'

const MINUTE_MS = 60_000
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
  /** Requests of the last 60 s. */
  requests: number
  /** Those of them that were refused. */
  refused: number
  /** HTTP calls for a request, since the counts begin. `undefined` with few requests. */
  calls: number | undefined
  /** Billed commands for a request, since the counts begin. `undefined` with few requests. */
  commands: number | undefined
  /**
   * The price of a month of 30 days at the rate of the last 60 s, dollars. `undefined` in the first minute, with few requests, and for a
   * store that bills no commands.
   */
  dollarsAMonth: number | undefined
}

/** The price of a month of 30 days at a rate of billed commands a second. */
export const dollarsAMonth = (commandsPerSecond: number): number =>
  commandsPerSecond * MONTH_S * DOLLARS_PER_COMMAND

export function rates(stats: Stats): Rates {
  const { now, total } = stats
  const recent = byOutcome(lastMinute(stats))
  const requests = decisionsIn(recent)
  const { store, series } = total
  // The calls for requests of `sluice verify` are in the sums, too.
  const decisions = sum(series.map((one) => one.decisions))
  const isEnough = decisions >= LEAST_FOR_A_BILL
  const each = (whole: number, ofOperators = 0) =>
    isEnough ? (whole - ofOperators) / decisions : undefined
  const commands = each(store.billedCommands, store.operators?.billedCommands)
  const isMinute = now - total.from >= MINUTE_MS
  return {
    requests,
    refused: refusedIn(recent),
    calls: each(store.calls, store.operators?.calls),
    commands,
    dollarsAMonth: commands && isMinute ? dollarsAMonth((requests / 60) * commands) : undefined,
  }
}

/** The policies that have refused requests in the last 60 s, those with the most refusals first. */
export const refusing = (stats: Stats) =>
  byPolicy(lastMinute(stats))
    .map(({ policy, counts }) => ({
      policy,
      requests: decisionsIn(counts),
      refused: refusedIn(counts),
    }))
    .filter(({ refused }) => Math.round(refused) > 0)
    .sort((a, b) => b.refused - a.refused)

/**
 * The decisions of a range in its slots, with zeros for the slots without one.
 * @param policy only decisions of this policy
 */
export function timeline(
  { now, slots }: Pick<Stats, 'now' | 'slots'>,
  range: Range = 'minutes',
  policy?: string,
) {
  const { slotMs, slots: count } = ranges[range]
  const last = Math.floor(now / slotMs) * slotMs
  const starts = Array.from({ length: count }, (_, n) => last - (count - 1 - n) * slotMs)
  const bySlot = Map.groupBy(slots, ({ from }) => Math.floor(from / slotMs) * slotMs)
  const series = starts.map((start) =>
    (bySlot.get(start) ?? [])
      .flatMap((slot) => slot.series)
      .filter((one) => policy === undefined || one.policy === policy),
  )
  return {
    times: starts.map((start) => start / 1000),
    counts: series.map(byOutcome),
    series: series.flat(),
  }
}
