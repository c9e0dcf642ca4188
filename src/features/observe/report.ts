/** The counts of an isolate. `GET /_sluice/v1/stats` returns it, and sinks receive it. */
import type { Health } from '../../core/connection/breaker.ts'
import type { DecidedBy, DecisionOutcome } from './event.ts'

/** The policy of series that are merged because there are too many. No policy can have this name. */
export const OTHER_POLICIES = '(other)'

/** The decisions with the same policy, outcome and decider. */
export interface Series {
  /** The empty text for decisions without a policy. */
  policy: string
  outcome: DecisionOutcome
  decidedBy: DecidedBy
  decisions: number
  units: number
  /** Decisions after which at least 80 % of the quota was used. */
  near: number
}

/** A client with many refusals. The true number is at most `refusals`, and at least `refusals - error`. */
export interface Offender {
  policy: string
  subject: string
  refusals: number
  /** The maximum overestimate (Metwally, Agrawal, El Abbadi: Space-Saving, ICDT 2005). */
  error: number
}

/** Durations in buckets. */
export interface Histogram {
  /** The upper bounds of the buckets in ms, ascending; the last bucket has no bound. */
  bounds: number[]
  /** The number of durations in each bucket: one more than bounds. Not cumulative. */
  counts: number[]
  /** The sum of all durations, ms. */
  sum: number
}

export interface StoreUsage {
  /** HTTP requests, including refunds, releases and failed ones. */
  calls: number
  billedCommands: number
  /** The part of the calls and commands above that charges no request: peeks, bans and lists of operators, checks of a database. Absent without any. */
  operators?: { calls: number; billedCommands: number }
  /** Failed calls by error code. */
  errors: Record<string, number>
  latency: Histogram
}

/** Reports that were lost, by sink. */
export type Dropped = Record<string, number>

/** The counts of a span of time. */
export interface Counts {
  /** ms since the epoch */
  from: number
  /** ms since the epoch */
  to: number
  series: Series[]
  offenders: Offender[]
  store: StoreUsage
}

/** Where counts go. A sink may fail or hang: it delays no request, and its loss is counted. */
export interface Sink {
  /** The name in `dropped`, such as `log`. */
  name: string
  /** Sends the counts since the last flush. Called under `waitUntil`. Rejects if they are lost. */
  send(counts: Counts, env: Record<string, unknown>): Promise<void> | void
}

/** The answer of `GET /_sluice/v1/stats`: the counts of one isolate. */
export interface Stats extends Health {
  v: 1
  /** The time of this answer, ms since the epoch. */
  now: number
  /** The counts since the start of the isolate. */
  total: Counts
  /** The counts in slots of 10 s, oldest first, of the last 10 minutes. Slots without a decision are left out. */
  slots: Pick<Counts, 'from' | 'to' | 'series'>[]
  /** Its circuit breaker. */
  circuit: 'open' | 'closed'
  /** The decisions of the last 60 s, and those of them by a fallback. */
  lastMinute: { decisions: number; fallbacks: number }
  /** Decisions by a fallback since the start. */
  fallbacks: number
  dropped: Dropped
}

const MINUTE_MS = 60_000

/** The series of the last 60 s. The slot in which the minute begins counts in proportion to its part of it. */
export const lastMinute = ({ now, slots }: Pick<Stats, 'now' | 'slots'>): Series[] =>
  slots.flatMap(({ from, to, series }) => {
    const share = Math.min(1, (to - now + MINUTE_MS) / (to - from))
    return share > 0 ? series.map((one) => ({ ...one, decisions: one.decisions * share })) : []
  })

const sum = (series: Series[]) => series.reduce((all, { decisions }) => all + decisions, 0)

export const fallbacksIn = (series: Series[]): number =>
  sum(series.filter(({ outcome }) => outcome === 'store-error'))

export function lastMinuteOf(stats: Pick<Stats, 'now' | 'slots'>): Stats['lastMinute'] {
  const series = lastMinute(stats).filter(({ outcome }) => outcome !== 'verified')
  return { decisions: Math.round(sum(series)), fallbacks: Math.round(fallbacksIn(series)) }
}
