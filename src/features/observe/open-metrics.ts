import type { Histogram, Series, Stats } from './report.ts'

export const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** A label without a value is left out. */
type Labels = Record<string, string | undefined>
type Sample = [labels: Labels, value: number, suffix?: string]

/** The suffix of a sample, by the type of its metric. */
const suffixes = { counter: '_total', gauge: '', histogram: '' }

/** Writes the counts in the format OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/). */
export function toOpenMetrics({ total, circuit, answeredAt, fallbacks, dropped }: Stats): string {
  const { from, series, store } = total
  const bySeries = ({ policy, outcome, decidedBy }: Series) => ({
    policy,
    outcome,
    decided_by: decidedBy,
  })
  const families = [
    family(
      'gauge',
      'sluice_observed_since_timestamp_seconds',
      'The time at which the counters were 0.',
      [[{}, from / 1000]],
      'seconds',
    ),
    family(
      'counter',
      'sluice_decisions',
      'Decisions. The policy is empty if none applies.',
      sums(series, bySeries, ({ decisions }) => decisions),
    ),
    family(
      'counter',
      'sluice_units',
      'The units that the decided requests cost.',
      sums(series, bySeries, ({ units }) => units),
    ),
    family(
      'counter',
      'sluice_near_limit',
      'Decisions after which at least 80 % of the quota was used.',
      sums(
        series,
        ({ policy }) => ({ policy }),
        ({ near }) => near,
      ),
    ),
    family('counter', 'sluice_fallbacks', 'Decisions by onStoreError.', [[{}, fallbacks]]),
    family('counter', 'sluice_store_calls', 'HTTP requests to the store.', [[{}, store.calls]]),
    family('counter', 'sluice_store_billed_commands', 'Commands that Upstash bills.', [
      [{}, store.billedCommands],
    ]),
    family(
      'counter',
      'sluice_store_errors',
      'Failed calls to the store.',
      by('code', store.errors),
    ),
    family(
      'histogram',
      'sluice_store_call_duration_seconds',
      'The duration of calls to the store.',
      buckets(store.latency),
      'seconds',
    ),
    family('gauge', 'sluice_circuit_open', '1 while the circuit breaker is open, otherwise 0.', [
      [{}, circuit === 'open' ? 1 : 0],
    ]),
    family(
      'gauge',
      'sluice_store_answered_timestamp_seconds',
      'The time of the latest answer in time.',
      answeredAt === undefined ? [] : [[{}, answeredAt / 1000]],
      'seconds',
    ),
    family('counter', 'sluice_dropped_reports', 'Reports that a sink lost.', by('sink', dropped)),
  ]
  return `${families.flat().join('\n')}\n# EOF\n`
}

/** The lines of a metric. Its name ends with its unit. */
function family(
  type: keyof typeof suffixes,
  name: string,
  help: string,
  samples: Sample[],
  unit?: 'seconds',
): string[] {
  return [
    `# TYPE ${name} ${type}`,
    ...(unit ? [`# UNIT ${name} ${unit}`] : []),
    `# HELP ${name} ${help}`,
    ...samples.map(
      ([labels, value, suffix = suffixes[type]]) => `${name}${suffix}${labelled(labels)} ${value}`,
    ),
  ]
}

function labelled(labels: Labels): string {
  const pairs = Object.entries(labels).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}="${escaped(value)}"`,
  )
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

const escaped = (value: string) =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

/** Sums a count of series with the same labels, because a metric may have only one sample for them. */
function sums(
  series: Series[],
  labelsOf: (one: Series) => Labels,
  countOf: (one: Series) => number,
): Sample[] {
  const samples = new Map<string, Sample>()
  for (const one of series) {
    const labels = labelsOf(one)
    const key = labelled(labels)
    const sample = samples.get(key)
    if (sample) sample[1] += countOf(one)
    else samples.set(key, [labels, countOf(one)])
  }
  return [...samples.values()]
}

const by = (label: string, counts: Record<string, number>) =>
  Object.entries(counts).map(([value, count]): Sample => [{ [label]: value }, count])

/** The cumulative buckets of a histogram. */
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
