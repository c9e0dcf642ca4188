/**
 * Runs the queries of examples/grafana/analytics-engine.json on the points that the sink writes. SQLite replaces the SQL API, with those
 * of its functions that the queries use (https://developers.cloudflare.com/analytics/analytics-engine/sql-reference/). Another function,
 * column or syntax is an error.
 */
import { dataPointsOf } from '../../src/features/observe/analytics.ts'
import type { Counts, StoreUsage } from '../../src/features/observe/report.ts'
import { createDataset } from '../support/dataset.ts'
import { noCounts, oneSeries } from '../support/observed-counts.ts'

/** A point of time at the beginning of a minute, in seconds since the epoch. */
const MINUTE = 1_795_305_360
const DATASET = 'sluice'
/** Each stored point stands for two. */
const SAMPLE_INTERVAL = 2

/** The counts of reports, divided by the sample interval. */
const reports: [at: number, Counts][] = [
  [
    MINUTE,
    noCounts({
      series: [
        oneSeries({ policy: 'per-ip', decisions: 60, units: 60, near: 5 }),
        oneSeries({ policy: '', decidedBy: 'list', decisions: 10, units: 0 }),
      ],
      offenders: [{ policy: 'per-ip', subject: 'AbCdEfGh01234567', refusals: 15, error: 0 }],
      store: usage({ calls: 50, billedCommands: 200 }, 400),
    }),
  ],
  [
    MINUTE + 59,
    noCounts({
      series: [
        oneSeries({ policy: 'per-ip', outcome: 'limited', decidedBy: 'cache', decisions: 15 }),
      ],
    }),
  ],
  [
    MINUTE + 60,
    noCounts({
      series: [
        oneSeries({ policy: 'per-ip', outcome: 'limited', decisions: 5 }),
        oneSeries({ policy: 'login', outcome: 'banned', decisions: 5 }),
        oneSeries({ policy: 'login', outcome: 'store-error', decidedBy: 'local', decisions: 5 }),
      ],
      offenders: [
        { policy: 'per-ip', subject: 'AbCdEfGh01234567', refusals: 3, error: 1 },
        { policy: 'login', subject: 'zyxwvutsrqponmlk', refusals: 5, error: 0 },
      ],
      store: usage({ calls: 25, billedCommands: 100, errors: { timeout: 2 } }, 200),
    }),
  ],
  // Before the time range.
  [MINUTE - 7200, noCounts({ series: [oneSeries({ policy: 'old', decisions: 1000 })] })],
]

function usage(fields: Partial<StoreUsage>, sum: number): StoreUsage {
  const { latency, ...others } = noCounts().store
  return { ...others, latency: { ...latency, sum }, ...fields }
}

const database = createDataset(DATASET, [
  function intDiv(one, other) {
    return Math.floor(Number(one) / Number(other))
  },
  function toUInt32(time) {
    return time
  },
  function NOW() {
    return MINUTE + 120
  },
])
for (const [at, counts] of reports) {
  for (const point of dataPointsOf(counts)) database.write(point, at, SAMPLE_INTERVAL)
}

/** Replaces the macros of the plugin and the variables of the dashboard. */
const expand = (query: string) =>
  query
    .replaceAll('$dataset', DATASET)
    .replace(/\$\{policy:singlequote\}/g, "'login','per-ip'")
    .replaceAll('$from', String(MINUTE - 3600))
    .replaceAll('$to', String(MINUTE + 120))
    .replaceAll('$interval', '60')

/** Syntax that SQLite lacks. */
const forSqlite = (query: string) =>
  query
    .replace(/INTERVAL '(\d+)' DAY/g, (_, days) => String(Number(days) * 86_400))
    .replace(/\bsumIf\((.*?), (blob\d .*?)\)( |$)/gm, 'SUM($1) FILTER (WHERE $2)$3')

/** A query must weigh each count with the sample interval, and bound the time that it reads. */
function check(query: string) {
  const bare = query.replace(/_sample_interval \* double\d+/g, '')
  if (/double\d|count\(/i.test(bare)) throw new Error(`a count without _sample_interval: ${query}`)
  if (!/timestamp >=? /.test(query)) throw new Error(`no bound of the time: ${query}`)
}

/** @throws {Error} if a query is not valid */
export function runAnalyticsQuery(query: string): Record<string, unknown>[] {
  check(query)
  return database.query(forSqlite(expand(query))).map((row) => ({ ...row }))
}
