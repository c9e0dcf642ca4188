import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toOpenMetrics } from '../../../../src/features/observe/open-metrics.ts'
import type { Stats } from '../../../../src/features/observe/report.ts'
import { anyCharacter } from '../../../support/any-text.ts'
import { isLong } from '../../../support/long.ts'
import { parseOpenMetrics } from '../../../support/open-metrics.ts'
import { someStats } from '../../../support/stats.ts'

/** The samples of a metric as a list of labels and values. */
const samplesOf = (stats: Stats, family: string) =>
  parseOpenMetrics(toOpenMetrics(stats))
    .get(family)!
    .samples.map(({ name, labels, value }) => [name, { ...labels }, value])

describe('OpenMetrics', () => {
  test('Every metric of the reference is in the text, with its type and unit.', () => {
    const families = [...parseOpenMetrics(toOpenMetrics(someStats())).values()]
    expect(families.map(({ name, type, unit }) => [name, type, unit])).toEqual([
      ['sluice_observed_since_timestamp_seconds', 'gauge', 'seconds'],
      ['sluice_decisions', 'counter', undefined],
      ['sluice_units', 'counter', undefined],
      ['sluice_near_limit', 'counter', undefined],
      ['sluice_store_calls', 'counter', undefined],
      ['sluice_store_billed_commands', 'counter', undefined],
      ['sluice_store_errors', 'counter', undefined],
      ['sluice_fallbacks', 'counter', undefined],
      ['sluice_store_call_duration_seconds', 'histogram', 'seconds'],
      ['sluice_circuit_open', 'gauge', undefined],
      ['sluice_store_answered_timestamp_seconds', 'gauge', 'seconds'],
      ['sluice_dropped_reports', 'counter', undefined],
    ])
    for (const { help } of families) expect(help).toMatch(/^[A-Z1].*\.$/)
  })

  test('Decisions and units have a sample for each policy, outcome and decider.', () => {
    const labels = [
      { policy: 'per-ip', outcome: 'allowed', decided_by: 'store' },
      { policy: 'per-ip', outcome: 'limited', decided_by: 'cache' },
      { policy: 'login', outcome: 'banned', decided_by: 'store' },
      { policy: '', outcome: 'allowed', decided_by: 'list' },
    ]
    expect(samplesOf(someStats(), 'sluice_decisions')).toEqual(
      [90, 7, 3, 40].map((value, index) => ['sluice_decisions_total', labels[index], value]),
    )
    expect(samplesOf(someStats(), 'sluice_units')).toEqual(
      [95, 8, 3, 0].map((value, index) => ['sluice_units_total', labels[index], value]),
    )
  })

  test('Decisions near the limit are summed by policy.', () => {
    expect(samplesOf(someStats(), 'sluice_near_limit')).toEqual([
      ['sluice_near_limit_total', { policy: 'per-ip' }, 25],
      ['sluice_near_limit_total', { policy: 'login' }, 0],
      ['sluice_near_limit_total', { policy: '' }, 0],
    ])
  })

  test('The buckets of the store latency are cumulative, in seconds, and end with +Inf.', () => {
    const name = 'sluice_store_call_duration_seconds'
    expect(samplesOf(someStats(), name)).toEqual([
      [`${name}_bucket`, { le: '0.001' }, 10],
      [`${name}_bucket`, { le: '0.0025' }, 30],
      [`${name}_bucket`, { le: '0.005' }, 30],
      [`${name}_bucket`, { le: '1.0' }, 90],
      [`${name}_bucket`, { le: '2.0' }, 94],
      [`${name}_bucket`, { le: '+Inf' }, 96],
      [`${name}_count`, {}, 96],
      [`${name}_sum`, {}, 12.3455],
    ])
  })

  const since = 'sluice_observed_since_timestamp_seconds'
  test.each<[family: string, ...samples: unknown[]]>([
    [since, [since, {}, 1_795_305_300.25]],
    ['sluice_fallbacks', ['sluice_fallbacks_total', {}, 3]],
    ['sluice_store_calls', ['sluice_store_calls_total', {}, 96]],
    ['sluice_store_billed_commands', ['sluice_store_billed_commands_total', {}, 384]],
    [
      'sluice_store_errors',
      ['sluice_store_errors_total', { code: 'timeout' }, 2],
      ['sluice_store_errors_total', { code: 'unreachable' }, 1],
    ],
    ['sluice_circuit_open', ['sluice_circuit_open', {}, 0]],
    [
      'sluice_dropped_reports',
      ['sluice_dropped_reports_total', { sink: 'log' }, 0],
      ['sluice_dropped_reports_total', { sink: 'analytics:COUNTS' }, 2],
    ],
  ])('The metric %s has the counts of its part.', (family, ...samples) => {
    expect(samplesOf(someStats(), family)).toEqual(samples)
  })

  test.each([
    ['open', 1],
    ['closed', 0],
  ] as const)('A circuit that is %s is the number %i.', (circuit, value) => {
    expect(samplesOf({ ...someStats(), circuit }, 'sluice_circuit_open')).toEqual([
      ['sluice_circuit_open', {}, value],
    ])
  })

  test('No subject of a client is in the text.', () => {
    const stats = someStats()
    expect(toOpenMetrics(stats)).not.toContain(stats.total.offenders[0]!.subject)
  })

  test('Label values of any characters are read back unchanged.', () => {
    const hostile = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom('"', '\\', '\n', '\\n', '\\"', '",policy="x', '} 1\n# EOF\n', '\r', ' ', '{'),
    )
    fc.assert(
      fc.property(fc.uniqueArray(hostile, { maxLength: 8 }), (names) => {
        const stats = someStats()
        stats.total.series = names.map((policy) => ({ ...stats.total.series[0]!, policy }))
        stats.total.store.errors = Object.fromEntries(names.map((name) => [name, 1]))
        stats.dropped = stats.total.store.errors
        const families = parseOpenMetrics(toOpenMetrics(stats))
        const valuesOf = (family: string, label: string) =>
          families
            .get(family)!
            .samples.map(({ labels }) => labels[label])
            .sort()
        const expected = names.toSorted()
        expect(valuesOf('sluice_decisions', 'policy')).toEqual(expected)
        expect(valuesOf('sluice_near_limit', 'policy')).toEqual(expected)
        const keys = Object.keys(stats.dropped).sort()
        expect(valuesOf('sluice_store_errors', 'code')).toEqual(keys)
        expect(valuesOf('sluice_dropped_reports', 'sink')).toEqual(keys)
      }),
      { numRuns: isLong ? 300 : 50 },
    )
  })

  test('An isolate without any decision has valid metrics.', () => {
    const stats = someStats()
    Object.assign(stats.total, { series: [], offenders: [] })
    const latency = { bounds: [], counts: [0], sum: 0 }
    stats.total.store = { calls: 0, billedCommands: 0, errors: {}, latency }
    const families = parseOpenMetrics(toOpenMetrics({ ...stats, dropped: {} }))
    expect(families.get('sluice_decisions')!.samples).toEqual([])
  })
})

describe('the parser of the tests', () => {
  const eof = (...lines: string[]) => `${lines.join('\n')}\n# EOF\n`
  const histogram = (...samples: string[]) => eof('# TYPE a histogram', ...samples, 'a_sum 1')
  test.each([
    ['no end', '# TYPE a gauge\na 1\n'],
    ['a line after the end', '# TYPE a gauge\na 1\n# EOF\na 2\n'],
    ['a counter without _total', eof('# TYPE a counter', 'a 1')],
    ['a negative counter', eof('# TYPE a counter', 'a_total -1')],
    ['a sample without a type', eof('a 1')],
    ['an unescaped quote', eof('# TYPE a gauge', 'a{b="c"d"} 1')],
    ['an unknown escape', eof('# TYPE a gauge', 'a{b="\\c"} 1')],
    ['a repeated sample', eof('# TYPE a gauge', 'a{b="c"} 1', 'a{b="c"} 2')],
    ['a repeated label', eof('# TYPE a gauge', 'a{b="c",b="d"} 1')],
    ['a repeated family', eof('# TYPE a gauge', '# TYPE b gauge', '# TYPE a gauge')],
    ['a unit that is not in the name', eof('# TYPE a gauge', '# UNIT a seconds')],
    ['a carriage return', '# TYPE a gauge\r\na 1\r\n# EOF\r\n'],
    ['an empty line', eof('# TYPE a gauge', '', 'a 1')],
    ['falling buckets', histogram('a_bucket{le="1.0"} 2', 'a_bucket{le="+Inf"} 1', 'a_count 1')],
    ['a histogram without +Inf', histogram('a_bucket{le="1.0"} 2', 'a_count 2')],
    ['a bound 1', histogram('a_bucket{le="1"} 1', 'a_bucket{le="+Inf"} 1', 'a_count 1')],
    ['another count than +Inf', histogram('a_bucket{le="+Inf"} 1', 'a_count 2')],
  ])('The parser refuses a text with %s.', (_, text) => {
    expect(() => parseOpenMetrics(text)).toThrow()
  })
})
