/** docs/reference/observability.md lists every option, field, word and series of the code, and no other. */
import { expect, test } from 'vitest'
import { dataPointsOf } from '../../src/features/observe/analytics.ts'
import { deciders, outcomes } from '../../src/features/observe/event.ts'
import { counters } from '../../src/features/observe/metrics.ts'
import { toOpenMetrics } from '../../src/features/observe/open-metrics.ts'
import { observedCounts } from '../support/observed-counts.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'
import { found, pageAt, read, sectionOf } from '../support/pages.ts'
import { listed } from '../support/series.ts'
import { someStats } from '../support/stats.ts'

const page = pageAt('docs/reference/observability.md')
const source = (file: string) => read(`src/features/observe/${file}`)

/** The first column of the tables below a heading. */
const rowsOf = (heading: string) =>
  found(sectionOf(page, heading), /^\| (?:<a id="[^"]+"><\/a>)?`([^`]+)`/gm)

/** The fields of an interface, in order. */
function fieldsOf(file: string, name: string): string[] {
  const [, body] = new RegExp(`^export interface ${name}\\b.*?\\{\\n(.*?)^\\}$`, 'ms').exec(
    source(file),
  )!
  return found(body!, /^ {2}(\w+)\??: /gm)
}

test('Every option has a row, and every row is an option.', () => {
  const [webhook, own] = source('options.ts').split('const fields = ')
  const options = (code: string) => found(code, /^ {2}(\w+): v\./gm)
  const nested = options(webhook!.split('const webhookFields = ')[1]!)
  expect(nested).toContain('url')
  expect(rowsOf('Options').sort()).toEqual(
    [...options(own!), ...nested.map((option) => `webhook.${option}`)].sort(),
  )
})

test('Every kind of label has a row.', () => {
  const [, kinds] = /subjects: v\.optional\(oneOf\(([^)]+)\)/.exec(source('options.ts'))!
  expect(rowsOf('Labels').slice(1).sort()).toEqual(kinds!.split(', ').sort())
})

test('Every field of an event has a row, in the order of the type.', () => {
  expect(rowsOf('Event')).toEqual(fieldsOf('event.ts', 'DecisionEvent'))
})

test.each([
  ['Outcomes', outcomes],
  ['Deciders', deciders],
])('The table %s has every word.', (heading, words) => {
  expect(rowsOf(heading).sort()).toEqual([...words].sort())
})

test('Every field of /stats is described.', () => {
  const described = sectionOf(page, 'Fields of /stats')
  const stats = fieldsOf('report.ts', 'Stats')
  const counts = ['Series', 'Offender', 'StoreUsage', 'Histogram'].flatMap((name) =>
    fieldsOf('report.ts', name),
  )
  const inTotal = fieldsOf('report.ts', 'Counts').map((field) => `total.${field}`)
  const missing = [...stats, ...inTotal, ...counts].filter(
    (field) => field !== 'total' && !described.includes(`\`${field}\``),
  )
  expect(missing).toEqual([])
})

test('The table of series has every metric of /metrics with its type and its labels.', () => {
  const stats = someStats()
  const suffix: Record<string, string> = { counter: '_total', info: '_info' }
  const shown = [...parseOpenMetrics(toOpenMetrics(stats)).values()].map(
    ({ name, type, samples }) => {
      const labels = new Set(samples.flatMap(({ labels }) => Object.keys(labels)))
      labels.delete('le')
      return { name: name + (suffix[type] ?? ''), type, labels: [...labels] }
    },
  )
  const byName = (one: { name: string }, other: { name: string }) =>
    one.name.localeCompare(other.name)
  expect(shown.length).toBeGreaterThan(10)
  expect([...listed].sort(byName)).toEqual(shown.sort(byName))
})

test('The table of OpenTelemetry has every metric, with its unit.', () => {
  const calls = [
    ...Object.keys(counters).map((name) => `sluice.${name}`),
    ...found(source('otlp.ts'), /'(sluice\.[a-z_.]{2,})'/g),
  ]
  const documented = sectionOf(page, 'OpenTelemetry')
  expect(calls).toContain('sluice.decisions')
  expect(calls.filter((name) => !documented.includes(`\`${name}\``))).toEqual([])
  expect(
    rowsOf('OpenTelemetry').filter((name) => name.startsWith('sluice.') && !calls.includes(name)),
  ).toEqual([])
})

test('The table of the Analytics Engine has a row for each kind of data point.', () => {
  const kinds = new Set(dataPointsOf(observedCounts()).map(({ blobs }) => blobs[0]!))
  expect(new Set(rowsOf('Analytics Engine').slice(1))).toEqual(kinds)
})

test('The figures of the table of costs follow from its formula.', () => {
  const perMonth = (isolates: number, every: number) => (isolates * 2_592_000) / every
  const dollars = (count: number, included: number, price: number) =>
    (Math.max(0, count - included) / 1e6) * price
  const cost = sectionOf(page, 'Cost')
  for (const [isolates, each, atTen, atSixty] of [
    [10, 5, '$0.74', '$0'],
    [100, 10, '$62', '$8.30'],
  ] as const) {
    const often = dollars(perMonth(isolates, 10) * each, 10e6, 0.25)
    const seldom = dollars(perMonth(isolates, 60) * each, 10e6, 0.25)
    expect(often).toBeCloseTo(Number(atTen.slice(1)), isolates > 10 ? 0 : 2)
    expect(seldom).toBeCloseTo(Number(atSixty.slice(1)), 1)
    expect(cost).toContain(atTen)
    expect(cost).toContain(atSixty)
  }
  expect(dollars(perMonth(100, 10), 20e6, 0.6)).toBeCloseTo(3.55, 2)
})
