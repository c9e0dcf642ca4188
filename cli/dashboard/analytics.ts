/** Reads the counts of all isolates from Workers Analytics Engine. `observe({ to: 'analytics:…' })` writes them. */
import { isWithin } from '../../src/core/base/clock.ts'
import type { PointKind } from '../../src/features/observe/analytics.ts'
import { deciders, outcomes } from '../../src/features/observe/event.ts'
import { post, ReportError } from '../../src/features/observe/post.ts'
import {
  fallbacksIn,
  type Histogram,
  lastMinuteOf,
  type Offender,
  type Series,
  type Stats,
  type StoreUsage,
} from '../../src/features/observe/report.ts'

import { type History, type Range, ranges } from './ranges.ts'

const MAX_AGE_MS = 15_000
const TIMEOUT_MS = 5_000

const SLOT_MS = 10_000
const SLOTS_MS = 600_000
const DAY_MS = 86_400_000

const MAX_ROWS = 10_000
const MAX_OFFENDERS = 100

/** Reads the counts of all isolates. Both functions return `undefined` if they cannot be read. */
export interface AnalyticsReader {
  /** The counts since midnight UTC, and those of the last 10 minutes in slots. A result is kept for 15 s, also a failure. */
  counts(): Promise<AllCounts | undefined>
  history(range: Range): Promise<History | undefined>
}

/** The counts of all isolates. Only an isolate knows its circuit and its lost reports. */
export type AllCounts = Pick<Stats, 'now' | 'total' | 'slots' | 'fallbacks' | 'lastMinute'>

/** The variables with the account, the token and the dataset. */
export const VARIABLES = [
  'CLOUDFLARE_ACCOUNT_ID',
  'CLOUDFLARE_API_TOKEN',
  'SLUICE_ANALYTICS_DATASET',
] as const

/**
 * A fixed start of the counts keeps the totals from decreasing.
 * @param env the environment of the command
 * @param tell tells the user why the counts cannot be read
 * @returns `undefined` if a variable is not set
 */
export function analyticsReader(
  env: Record<string, string | undefined>,
  tell: (problem: string) => void,
  fetcher?: typeof fetch,
): AnalyticsReader | undefined {
  const [account, token, dataset] = VARIABLES.map((name) => env[name])
  if (!account || !token || !dataset) return undefined
  const url = `https://api.cloudflare.com/client/v4/accounts/${encodeURIComponent(account)}/analytics_engine/sql`
  const headers = { authorization: `Bearer ${token}` }
  const query = async (sql: string) =>
    rowsOf(await post(url, { headers, body: sql }, TIMEOUT_MS, fetcher))
  /** The latest results. */
  const kept = new Map<string, { at: number; result: Promise<unknown> }>()
  function keep<Result>(name: string, read: (table: string, now: number) => Promise<Result>) {
    const now = Date.now()
    const known = kept.get(name)
    if (known && isWithin(now, known.at, known.at + MAX_AGE_MS))
      return known.result as Promise<Result | undefined>
    const result = Promise.resolve()
      .then(() => read(tableOf(dataset!), now))
      .catch((error: Error) => {
        tell(`The counts of all isolates cannot be read: ${error.message}`)
        return undefined
      })
    kept.set(name, { at: now, result })
    return result
  }
  return {
    counts: () => keep('counts', (table, now) => read(table, now, query)),
    history: (range) => keep(range, (table, now) => readRange(table, now, range, query)),
  }
}

async function readRange(
  table: string,
  now: number,
  range: Range,
  query: (sql: string) => Promise<AnalyticsRow[]>,
): Promise<History> {
  const { slotMs, slots } = ranges[range]
  const since = Math.floor(now / slotMs) * slotMs - (slots - 1) * slotMs
  const rows = await query(
    select(table, { kinds: ['decisions'], since, doubles: 3, by: slotsBy(slotMs) }),
  )
  return { since, slots: slotsOf(rows, slotMs) }
}

/** The name of a dataset in SQL. It comes from a variable of the command, not from a client. @throws {ReportError} */
function tableOf(dataset: string): string {
  if (/^[a-z_]\w*$/i.test(dataset)) return dataset
  if (/^[\w.-]+$/.test(dataset)) return `"${dataset}"`
  throw new ReportError(
    'not-configured',
    'SLUICE_ANALYTICS_DATASET: expected letters, digits, "_", "." and "-"',
  )
}

/** A row of an answer, by the names of `select`. */
type AnalyticsRow = Record<string, unknown>

/** @throws {ReportError} */
function rowsOf(answer: string): AnalyticsRow[] {
  try {
    const { data } = JSON.parse(answer)
    if (Array.isArray(data)) return data
  } catch {}
  throw new ReportError('bad-reply', 'the answer has no rows')
}

async function read(
  table: string,
  now: number,
  query: (sql: string) => Promise<AnalyticsRow[]>,
): Promise<AllCounts> {
  const from = now - (now % DAY_MS)
  const firstSlot = now - (now % SLOT_MS) - SLOTS_MS
  const ask = (part: AnalyticsQuery) => query(select(table, part))
  const [totals, slots, offenders] = await Promise.all([
    ask({ kinds: ['decisions', 'store'], since: from, doubles: 20, by: totalsBy }),
    ask({ kinds: ['decisions'], since: firstSlot, doubles: 3, by: slotsBy(SLOT_MS) }),
    ask({ kinds: ['offender'], since: from, doubles: 2, by: offendersBy, limit: MAX_OFFENDERS }),
  ])
  const ofSlots = slotsOf(slots)
  const series = totals.filter(({ kind }) => kind === 'decisions').flatMap(seriesOf)
  return {
    now,
    total: {
      from,
      to: now,
      series,
      offenders: offenders.map(offenderOf),
      store: storeUsageOf(totals.filter(({ kind }) => kind === 'store')),
    },
    slots: ofSlots,
    fallbacks: fallbacksIn(series),
    lastMinute: lastMinuteOf({ now, slots: ofSlots }),
  }
}

const seriesBy = { policy: 'blob2', outcome: 'blob3', decided_by: 'blob4' }
const totalsBy = { kind: 'blob1', ...seriesBy, bounds: 'blob6' }
const slotsBy = (slotMs: number) => ({
  slot: `toUnixTimestamp(toStartOfInterval(timestamp, INTERVAL '${slotMs / 1000}' SECOND))`,
  ...seriesBy,
})
const offendersBy = { policy: 'blob2', subject: 'blob5' }

interface AnalyticsQuery {
  kinds: PointKind[]
  /** ms since the epoch */
  since: number
  /** The number of doubles, which become the columns `d1`, `d2` and so on. */
  doubles: number
  /** The other columns: name and expression. */
  by: Record<string, string>
  limit?: number
}

/**
 * A query for sums, the largest first. The Analytics Engine may keep only a sample of the points: `_sample_interval` is the number of
 * points that a row stands for.
 */
function select(
  table: string,
  { kinds, since, doubles, by, limit = MAX_ROWS }: AnalyticsQuery,
): string {
  const columns = [
    ...Object.entries(by).map(([name, expression]) => `${expression} AS ${name}`),
    ...Array.from(
      { length: doubles },
      (_, index) => `SUM(_sample_interval * double${index + 1}) AS d${index + 1}`,
    ),
  ]
  return [
    `SELECT ${columns.join(', ')}`,
    `FROM ${table}`,
    `WHERE blob1 IN (${kinds.map((kind) => `'${kind}'`).join(', ')})`,
    `AND timestamp >= toDateTime(${Math.floor(since / 1000)})`,
    `GROUP BY ${Object.keys(by).join(', ')}`,
    `ORDER BY d1 DESC LIMIT ${limit} FORMAT JSON`,
  ].join('\n')
}

/** ClickHouse may write a number as text. */
function numberOf(value: unknown): number {
  const number = Number(value)
  return Number.isFinite(number) ? number : 0
}

/** Leaves out a row with words of another version of Sluice. */
function seriesOf({
  policy,
  outcome: third,
  decided_by: fourth,
  d1,
  d2,
  d3,
}: AnalyticsRow): Series[] {
  const outcome = outcomes.find((word) => word === third)
  const decidedBy = deciders.find((word) => word === fourth)
  if (!outcome || !decidedBy) return []
  const [decisions, units, near] = [numberOf(d1), numberOf(d2), numberOf(d3)]
  return [{ policy: String(policy), outcome, decidedBy, decisions, units, near }]
}

const offenderOf = ({ policy, subject, d1, d2 }: AnalyticsRow): Offender => ({
  policy: String(policy),
  subject: String(subject),
  refusals: numberOf(d1),
  error: numberOf(d2),
})

function slotsOf(rows: AnalyticsRow[], slotMs = SLOT_MS): Stats['slots'] {
  const slots = new Map<number, Series[]>()
  for (const row of rows) {
    const from = numberOf(row.slot) * 1000
    const series = [...(slots.get(from) ?? []), ...seriesOf(row)]
    if (series.length > 0) slots.set(from, series)
  }
  return [...slots]
    .toSorted(([a], [b]) => a - b)
    .map(([from, series]) => ({ from, to: from + slotMs, series }))
}

/** @param rows one for each error code, and one for each set of bounds, the most calls first */
function storeUsageOf(rows: AnalyticsRow[]): StoreUsage {
  const errors = rows.filter(({ outcome }) => outcome !== '')
  const usages = rows.filter(({ outcome }) => outcome === '')
  const latency: Histogram = { bounds: boundsOf(usages[0]), counts: [], sum: 0 }
  latency.counts = Array(latency.bounds.length + 1).fill(0)
  for (const usage of usages) addDurations(latency, usage)
  const sum = (column: 'd1' | 'd2') =>
    usages.reduce((all, usage) => all + numberOf(usage[column]), 0)
  return {
    calls: sum('d1'),
    billedCommands: sum('d2'),
    errors: Object.fromEntries(errors.map(({ outcome, d1 }) => [String(outcome), numberOf(d1)])),
    latency,
  }
}

function boundsOf(row: AnalyticsRow | undefined): number[] {
  const bounds = String(row?.bounds ?? '')
    .split(',')
    .filter(Boolean)
    .map(Number)
  return bounds.every(Number.isFinite) ? bounds : []
}

/** Adds the durations of a row. Its bounds may be those of another version of Sluice: a count goes to the next bound that is not lower. */
function addDurations(latency: Histogram, row: AnalyticsRow) {
  const { bounds, counts } = latency
  const own = boundsOf(row)
  latency.sum += numberOf(row.d3)
  for (let index = 0; index <= own.length; index++) {
    const bound = own[index] ?? Number.POSITIVE_INFINITY
    const bucket = bounds.findIndex((other) => other >= bound)
    counts[bucket < 0 ? bounds.length : bucket]! += numberOf(row[`d${index + 4}`])
  }
}
