/** An OpenTelemetry collector on loopback, and a reader of OTLP JSON that knows only the specification. */
import type { IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Answer } from './issuer.ts'
import { startLoopback } from './loopback.ts'

/** A point of a metric, with its numbers decoded. */
interface OtlpPoint {
  labels: Record<string, string>
  /** ns since the epoch */
  start: bigint
  end: bigint
  value?: number
  histogram?: { count: bigint; sum: number; buckets: bigint[]; bounds: number[] }
}

interface OtlpReport {
  resource: Record<string, string>
  scope: string
  metrics: Map<string, { unit: string; points: OtlpPoint[] }>
}

/** Starts a collector that answers with `answer`. */
export async function startCollector() {
  const { url, close } = await startLoopback(async (request, response) => {
    const body = await text(request)
    collector.received.push({ path: request.url!, headers: request.headers, body })
    collector.answer(response, request)
  })
  const collector = {
    url: `${url}/v1/metrics`,
    answer: ((response) => response.end('{}')) as Answer,
    received: [] as { path: string; headers: IncomingHttpHeaders; body: string }[],
    reports: () => collector.received.map(({ body }) => readOtlp(body)),
    stop: close,
  }
  return collector
}

type Fields = Record<string, unknown>

/** Reads `ExportMetricsServiceRequest`. @throws if it breaks a rule of OTLP 1.10 or of the JSON mapping of protobuf */
export function readOtlp(json: string): OtlpReport {
  const request = fields(JSON.parse(json), ['resourceMetrics'])
  const [resourceMetrics] = list(request.resourceMetrics, 1).map((one) =>
    fields(one, ['resource', 'scopeMetrics']),
  )
  const resource = fields(resourceMetrics!.resource, ['attributes'])
  const [scopeMetrics] = list(resourceMetrics!.scopeMetrics, 1).map((one) =>
    fields(one, ['scope', 'metrics']),
  )
  const metrics: OtlpReport['metrics'] = new Map()
  for (const metric of list(scopeMetrics!.metrics)) {
    const { name, unit } = metric as Fields
    if (metrics.has(String(name))) throw new Error(`the metric ${name} is twice in the report`)
    metrics.set(String(name), { unit: String(unit), points: readMetric(metric as Fields) })
  }
  const { name } = fields(scopeMetrics!.scope, ['name'])
  return { resource: labelsOf(resource.attributes), scope: String(name), metrics }
}

function readMetric(metric: Fields): OtlpPoint[] {
  const isSum = 'sum' in metric
  fields(metric, ['name', 'unit', isSum ? 'sum' : 'histogram'])
  const data = isSum
    ? fields(metric.sum, ['aggregationTemporality', 'isMonotonic', 'dataPoints'])
    : fields(metric.histogram, ['aggregationTemporality', 'dataPoints'])
  if (data.aggregationTemporality !== 1) throw new Error('the temporality is not delta')
  if (isSum && data.isMonotonic !== true) throw new Error('the sum is not monotonic')
  return list(data.dataPoints).map((point) => (isSum ? sumPoint : histogramPoint)(point as Fields))
}

function sumPoint(point: Fields): OtlpPoint {
  const type = 'asInt' in point ? 'asInt' : 'asDouble'
  fields(point, ['attributes', 'startTimeUnixNano', 'timeUnixNano', type])
  const value = type === 'asInt' ? Number(int64(point.asInt)) : double(point.asDouble)
  if (value < 0) throw new Error('a monotonic sum is negative')
  return { ...timeOf(point), labels: labelsOf(point.attributes), value }
}

function histogramPoint(point: Fields): OtlpPoint {
  const known = ['startTimeUnixNano', 'timeUnixNano', 'count', 'sum']
  fields(point, [...known, 'bucketCounts', 'explicitBounds'])
  const count = int64(point.count)
  const buckets = list(point.bucketCounts).map(int64)
  const bounds = list(point.explicitBounds).map(double)
  if (buckets.length !== bounds.length + 1) throw new Error('expected one bucket more than bounds')
  if (buckets.reduce((sum, one) => sum + one, 0n) !== count) throw new Error('wrong count')
  if (bounds.some((bound, index) => index > 0 && bound <= bounds[index - 1]!)) {
    throw new Error('the bounds are not ascending')
  }
  return {
    ...timeOf(point),
    labels: {},
    histogram: { count, sum: double(point.sum), buckets, bounds },
  }
}

function timeOf({ startTimeUnixNano, timeUnixNano }: Fields) {
  const [start, end] = [int64(startTimeUnixNano), int64(timeUnixNano)]
  if (start <= 0n || end < start) throw new Error('the start is not before the end')
  return { start, end }
}

function labelsOf(attributes: unknown): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const attribute of list(attributes)) {
    const { key, value } = fields(attribute, ['key', 'value'])
    const { stringValue } = fields(value, ['stringValue'])
    if (typeof key !== 'string' || typeof stringValue !== 'string') throw new Error('not a text')
    if (key in labels) throw new Error(`the attribute ${key} is there twice`)
    labels[key] = stringValue
  }
  return labels
}

/** An object with exactly these fields. */
function fields(value: unknown, names: string[]): Fields {
  const given = Object.keys(value as object)
    .toSorted()
    .join()
  if (given !== names.toSorted().join()) throw new Error(`expected ${names}, got ${given}`)
  return value as Fields
}

function list(value: unknown, length?: number): unknown[] {
  if (!Array.isArray(value)) throw new Error('not a list')
  if (length !== undefined && value.length !== length) throw new Error(`not ${length} elements`)
  return value
}

function int64(value: unknown): bigint {
  if (typeof value !== 'string' || !/^-?\d{1,19}$/.test(value)) throw new Error('not an int64')
  return BigInt(value)
}

function double(value: unknown): number {
  if (typeof value !== 'number') throw new Error('not a double')
  return value
}
