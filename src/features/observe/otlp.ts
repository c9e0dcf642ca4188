/** The sink that sends metrics to an OpenTelemetry collector: OTLP/HTTP in JSON (https://opentelemetry.io/docs/specs/otlp/). */
import { parsedJson } from '../../core/base/json.ts'
import { counters, type Labels, pointsOf } from './metrics.ts'
import { post, ReportError } from './post.ts'
import type { Counts, Histogram, Sink } from './report.ts'

/** A report is lost after this time, so the connection ends then. */
const TIMEOUT_MS = 5_000

/** `AggregationTemporality`: each report has the counts since the previous one. */
const DELTA = 1

/** @param url the complete URL, such as `https://collector.example.com/v1/metrics` */
export function otlpSink(url: string): Sink {
  let instance: string | undefined
  return {
    name: `otlp:${new URL(url).host}`,
    async send(counts, env) {
      const metrics = metricsOf(counts)
      if (metrics.length === 0) return
      const headers = headersOf(env.OTEL_EXPORTER_OTLP_HEADERS)
      // A delta stream must have one writer, so each isolate has a name. Workers have no random numbers before the first request.
      instance ??= crypto.randomUUID()
      const resource = attributes({
        'service.name': String(env.OTEL_SERVICE_NAME ?? 'sluice'),
        'service.instance.id': instance,
      })
      const scopeMetrics = [{ scope: { name: 'sluice' }, metrics }]
      const body = JSON.stringify({ resourceMetrics: [{ resource, scopeMetrics }] })
      checkAccepted(await post(url, { headers, body }, TIMEOUT_MS))
    },
  }
}

function metricsOf(counts: Counts) {
  const { from, to } = counts
  const time = { startTimeUnixNano: nanoseconds(from), timeUnixNano: nanoseconds(to) }
  const sums = pointsOf(counts).flatMap(([name, points]) => {
    const dataPoints = points
      .filter(([, value]) => value > 0)
      .map(([labels, value]) => ({ ...attributes(labels, 'sluice.'), ...time, ...numberOf(value) }))
    const sum = { aggregationTemporality: DELTA, isMonotonic: true, dataPoints }
    return dataPoints.length > 0
      ? [{ name: `sluice.${name}`, unit: `{${counters[name][0]}}`, sum }]
      : []
  })
  return [...sums, ...histogram('sluice.store.call.duration', time, counts.store.latency)]
}

/** The histogram in seconds, the unit of durations in OpenTelemetry. */
function histogram(name: string, time: object, { bounds, counts, sum }: Histogram) {
  const count = counts.reduce((all, one) => all + one, 0)
  if (count === 0) return []
  const dataPoint = {
    ...time,
    count: String(count),
    sum: sum / 1000,
    bucketCounts: counts.map(String),
    explicitBounds: bounds.map((ms) => ms / 1000),
  }
  const metric = { aggregationTemporality: DELTA, dataPoints: [dataPoint] }
  return [{ name, unit: 's', histogram: metric }]
}

const attributes = (labels: Labels, prefix = '') => ({
  attributes: Object.entries(labels).map(([key, stringValue]) => ({
    key: `${prefix}${key}`,
    value: { stringValue },
  })),
})

/** The JSON mapping of protobuf writes integers of 64 bits as text. */
const numberOf = (value: number) =>
  Number.isSafeInteger(value) ? { asInt: String(value) } : { asDouble: value }

const nanoseconds = (ms: number) => `${Math.round(ms)}000000`

/** Reads `name=value` pairs with percent-encoded values. @throws {ReportError} without the values, which may be secrets */
function headersOf(variable: unknown): Headers {
  const headers = new Headers()
  try {
    const pairs = typeof variable === 'string' ? variable.split(',') : []
    for (const pair of pairs.filter((text) => text.trim() !== '')) {
      const [, name, value] = /^([^=]*)=(.*)$/s.exec(pair)!
      headers.set(name!.trim(), decodeURIComponent(value!.trim()))
    }
  } catch {
    throw new ReportError(
      'not-configured',
      'OTEL_EXPORTER_OTLP_HEADERS: expected name=value pairs separated by commas, each value percent-encoded',
    )
  }
  headers.set('content-type', 'application/json')
  return headers
}

/** @throws {ReportError} if the collector refused a part of the report. It may answer with a body that is not JSON. */
function checkAccepted(answer: string) {
  const refused = Number(Object(parsedJson(answer)).partialSuccess?.rejectedDataPoints ?? 0)
  if (refused > 0) throw new ReportError('bad-reply', `the server refused ${refused} data points`)
}
