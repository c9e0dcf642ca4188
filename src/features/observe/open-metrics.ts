/** The endpoints of the counts of one isolate. */
import type { Database } from '../../core/decide/question.ts'
import type { Endpoint } from '../../core/endpoint.ts'
import { counters, type Labels, pointsOf } from './metrics.ts'
import type { Histogram, Stats } from './report.ts'

export const reportEndpoint = (
  statsOf: (database: Pick<Database, 'health'>) => Stats,
): Endpoint => ({
  path: /^(\/metrics|\/stats)$/,
  methods: ['GET', 'HEAD'],
  scopes: ['operate'],
  async answer({ rest, request, parts: { database } }) {
    const stats = statsOf(database)
    const isJson = rest === '/stats'
    const text = isJson ? JSON.stringify(stats) : toOpenMetrics(stats)
    const type = isJson ? 'application/json' : OPEN_METRICS
    const body = request.method === 'HEAD' ? null : text
    return new Response(body, { headers: { 'Content-Type': type, 'Cache-Control': 'no-store' } })
  },
})

export const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

type Sample = [labels: Labels, value: number, suffix?: string]

const suffixes = { counter: '_total', gauge: '', histogram: '' }

/** Writes the counts in the format OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/). */
export function toOpenMetrics({ total, circuit, answeredAt, fallbacks, dropped }: Stats): string {
  const families = [
    family('gauge', 'observed_since_timestamp_seconds', 'The time at which the counters were 0.', [
      [{}, total.from / 1000],
    ]),
    ...pointsOf(total).map(([name, points]) =>
      family('counter', name.replace('.', '_'), counters[name][1], points),
    ),
    family('counter', 'fallbacks', 'Decisions by onStoreError.', [[{}, fallbacks]]),
    family('histogram', 'store_call_duration_seconds', 'The duration of calls to the store.', [
      ...buckets(total.store.latency),
    ]),
    family('gauge', 'circuit_open', '1 while the circuit breaker is open, otherwise 0.', [
      [{}, circuit === 'open' ? 1 : 0],
    ]),
    family('gauge', 'store_answered_timestamp_seconds', 'The time of the latest answer in time.', [
      ...(answeredAt === undefined ? [] : [[{}, answeredAt / 1000] as Sample]),
    ]),
    family('counter', 'dropped_reports', 'Reports that a sink lost.', [
      ...Object.entries(dropped).map(([sink, count]): Sample => [{ sink }, count]),
    ]),
  ]
  return `${families.flat().join('\n')}\n# EOF\n`
}

/** The lines of a metric. Its name ends with its unit. */
function family(type: keyof typeof suffixes, own: string, help: string, samples: Sample[]) {
  const name = `sluice_${own}`
  return [
    `# TYPE ${name} ${type}`,
    ...(name.endsWith('_seconds') ? [`# UNIT ${name} seconds`] : []),
    `# HELP ${name} ${help}`,
    ...samples.map(
      ([labels, value, suffix = suffixes[type]]) => `${name}${suffix}${labelled(labels)} ${value}`,
    ),
  ]
}

function labelled(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

const escaped = (value: string) =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

function buckets({ bounds, counts, sum }: Histogram): Sample[] {
  let count = 0
  const samples = counts.map((inBucket, index): Sample => {
    count += inBucket
    return [{ le: upperBound(bounds[index]) }, count, '_bucket']
  })
  return [...samples, [{}, count, '_count'], [{}, sum / 1000, '_sum']]
}

/** An upper bound in seconds, with a decimal point as the format demands. */
function upperBound(ms: number | undefined): string {
  if (ms === undefined) return '+Inf'
  return Number.isInteger(ms / 1000) ? `${ms / 1000}.0` : `${ms / 1000}`
}
