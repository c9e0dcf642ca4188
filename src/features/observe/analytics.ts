/** The sink that writes to Workers Analytics Engine. `sluice dashboard` reads what it writes (cli/dashboard/analytics.ts). */
import { ReportError } from './post.ts'
import { type Counts, OTHER_POLICIES, type Series, type Sink } from './report.ts'

// https://developers.cloudflare.com/analytics/analytics-engine/limits/
/** Data points of one invocation of the Worker. */
const MAX_POINTS = 25
const MAX_INDEX_BYTES = 96
/** The six blobs of a point fit into 5,120 bytes, the limit before June 2025. */
const MAX_BLOB_BYTES = 800

const MAX_OFFENDERS = 8
/** Points for error codes. The errors with other codes are one more point. */
const MAX_CODES = 4

export type PointKind = 'decisions' | 'offender' | 'store'

export interface DataPoint {
  indexes: [string]
  blobs: string[]
  doubles: number[]
}

/** A binding in `analytics_engine_datasets` of the wrangler configuration. */
interface AnalyticsDataset {
  writeDataPoint(point: DataPoint): void
}

export const analyticsSink = (binding: string): Sink => ({
  name: `analytics:${binding}`,
  async send(counts, env) {
    const dataset = env[binding] as Partial<AnalyticsDataset> | undefined
    if (!dataset?.writeDataPoint) {
      throw new ReportError(
        'not-configured',
        `no dataset ${binding}: add a binding with this name to analytics_engine_datasets in the wrangler configuration`,
      )
    }
    for (const point of dataPointsOf(counts)) dataset.writeDataPoint(point)
  },
})

/**
 * Converts counts to at most 25 data points. The index is the policy.
 *
 * | blob1       | blob2  | blob3      | blob4      | blob5   | blob6  | double1   | double2         | double3   | from double4 |
 * | ----------- | ------ | ---------- | ---------- | ------- | ------ | --------- | --------------- | --------- | ------------ |
 * | `decisions` | policy | outcome    | decided by |         |        | decisions | units           | near      |              |
 * | `offender`  | policy |            |            | subject |        | refusals  | error           |           |              |
 * | `store`     |        |            |            |         | bounds | calls     | billed commands | sum of ms | buckets      |
 * | `store`     |        | error code |            |         |        | failed    |                 |           |              |
 */
export function dataPointsOf({ series, offenders, store }: Counts): DataPoint[] {
  const { bounds, counts, sum } = store.latency
  const usage = [store.calls, store.billedCommands, sum, ...counts]
  const points = [
    ...(store.calls > 0 ? [point('store', ['', '', '', '', bounds.join()], usage)] : []),
    ...fewerCodes(store.errors).map(([code, failed]) => point('store', ['', code], [failed])),
    ...offenders
      .toSorted((a, b) => b.refusals - a.refusals)
      .slice(0, MAX_OFFENDERS)
      .map(({ policy, subject, refusals, error }) =>
        point('offender', [policy, '', '', subject], [refusals, error]),
      ),
  ]
  const rows = series
    .filter(({ decisions }) => decisions > 0)
    .toSorted((a, b) => b.decisions - a.decisions)
  const kept = fewerSeries(rows, MAX_POINTS - points.length)
  const pointOf = ({ policy, outcome, decidedBy, decisions, units, near }: Series) =>
    point('decisions', [policy, outcome, decidedBy], [decisions, units, near])
  return [...points, ...kept.map(pointOf)]
}

/** @param blobs the blobs from blob2, which is the policy */
const point = (kind: PointKind, blobs: [string, ...string[]], doubles: number[]): DataPoint => ({
  indexes: [cut(blobs[0], MAX_INDEX_BYTES)],
  blobs: [kind, ...blobs.map((blob) => cut(blob, MAX_BLOB_BYTES))],
  doubles,
})

/** At most `limit` series with the same totals: the largest ones, which come first, and the others merged across policies. */
function fewerSeries(
  series: Series[],
  limit: number,
  group = ({ outcome, decidedBy }: Series) => `${outcome} ${decidedBy}`,
): Series[] {
  if (series.length <= limit) return series
  for (let kept = limit - 1; kept >= 0; kept--) {
    const merged = merge(series.slice(kept), group)
    if (kept + merged.length <= limit) return [...series.slice(0, kept), ...merged]
  }
  // Too many kinds of decisions for one flush. A merged series then has the decider of its largest part.
  return fewerSeries(series, limit, ({ outcome }) => outcome)
}

function merge(series: Series[], group: (one: Series) => string): Series[] {
  const merged = new Map<string, Series>()
  for (const one of series) {
    const id = group(one)
    const into = merged.get(id)
    if (into) {
      into.decisions += one.decisions
      into.units += one.units
      into.near += one.near
    } else merged.set(id, { ...one, policy: OTHER_POLICIES })
  }
  return [...merged.values()]
}

/** The most frequent error codes, and the sum of the others as the code `other`. */
function fewerCodes(errors: Record<string, number>): [code: string, failed: number][] {
  const codes = Object.entries(errors)
    .filter(([, failed]) => failed > 0)
    .toSorted((a, b) => b[1] - a[1])
  const rest = codes.splice(MAX_CODES).reduce((sum, [, failed]) => sum + failed, 0)
  return rest > 0 ? [...codes, ['other', rest]] : codes
}

const encoder = new TextEncoder()

/** The longest beginning of a text that has at most `maxBytes` in UTF-8. */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(maxBytes)).read)
}
