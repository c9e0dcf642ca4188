/** The files in examples/prometheus are valid, and their rules name only series that exist. */
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { found, read as readText } from '../support/pages.ts'
import { parsePromql } from '../support/promql.ts'
import { bareCounters, unknownNames } from '../support/series.ts'

const read = (file: string) =>
  parse(readText(`examples/prometheus/${file}`), { strict: true, uniqueKeys: true })

const duration = v.pipe(v.string(), v.regex(/^\d+[smhd]$/))
const texts = v.record(v.pipe(v.string(), v.regex(/^[a-z_]+$/)), v.pipe(v.string(), v.minLength(1)))
const recording = v.strictObject({
  record: v.pipe(v.string(), v.regex(/^[a-z_]+(:[a-z_0-9]+)+$/)),
  expr: v.string(),
})
const alert = v.strictObject({
  alert: v.pipe(v.string(), v.regex(/^Sluice[A-Z]\w+$/)),
  expr: v.string(),
  for: duration,
  labels: v.strictObject({ severity: v.picklist(['info', 'warning', 'critical']) }),
  annotations: v.intersect([
    v.strictObject({ summary: v.string(), description: v.string() }),
    texts,
  ]),
})
/** https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/ */
const ruleFile = v.strictObject({
  groups: v.array(
    v.strictObject({ name: v.string(), rules: v.array(v.union([recording, alert])) }),
  ),
})

const { groups } = v.parse(ruleFile, read('alerts.yml'))
const rules = groups.flatMap((group) => group.rules)
const alerts = rules.filter((rule) => 'alert' in rule)
const nameOf = (rule: (typeof rules)[number]) => ('alert' in rule ? rule.alert : rule.record)
/** Each recording rule keeps the labels of its aggregation. */
const records = new Map(
  rules
    .filter((rule) => 'record' in rule)
    .map(({ record, expr }) => [record, parsePromql(expr).groupings[0]!.labels]),
)

describe('The rules of alerts.yml', () => {
  test('There is an alert for each condition that an operator must know.', () => {
    expect(alerts.map((rule) => rule.alert)).toEqual([
      'SluiceFallbacks',
      'SluiceRefusalsSurge',
      'SluiceCircuitOpen',
      'SluiceNearLimitSurge',
      'SluiceDroppedReports',
    ])
  })

  test('No two groups or rules have the same name.', () => {
    const names = [...groups.map(({ name }) => name), ...rules.map(nameOf)]
    expect(new Set(names).size).toBe(names.length)
  })

  test.each(rules.map((rule) => [nameOf(rule), rule.expr]))(
    'The expression of %s is valid, and names listed series only.',
    (_, expr) => {
      expect(parsePromql(expr).type).toBe('vector')
      expect(unknownNames(expr, records)).toEqual([])
      expect(bareCounters(expr)).toEqual([])
    },
  )

  test.each(alerts.map((rule) => [rule.alert, rule] as const))(
    'The texts of %s name only labels that the alert has.',
    (_, { expr, annotations }) => {
      const { groupings, selectors } = parsePromql(expr)
      const labels = new Set([
        ...groupings.flatMap((grouping) => grouping.labels),
        ...selectors.flatMap(({ metric }) => records.get(metric) ?? []),
      ])
      const named = Object.values(annotations).flatMap((text) => found(text, /\$labels\.(\w+)/g))
      expect(named.filter((label) => !labels.has(label))).toEqual([])
    },
  )

  test('A recording rule comes before the rules that use it.', () => {
    const order = rules.map(nameOf)
    for (const [index, { expr }] of rules.entries()) {
      const used = parsePromql(expr).selectors.filter(({ metric }) => records.has(metric))
      for (const { metric } of used) expect(order.indexOf(metric)).toBeLessThan(index)
    }
  })
})

test('prometheus.yml scrapes the metrics with an operator token, and reads the rules.', () => {
  const { rule_files, scrape_configs } = read('prometheus.yml')
  expect(rule_files).toEqual(['alerts.yml'])
  expect(scrape_configs).toEqual([
    {
      job_name: 'sluice',
      scheme: 'https',
      metrics_path: '/_sluice/v1/metrics',
      scrape_interval: '30s',
      authorization: { type: 'Bearer', credentials_file: expect.stringMatching(/^\//) },
      static_configs: [{ targets: [expect.stringMatching(/^[\w.]+$/)] }],
    },
  ])
})

describe('The parser of PromQL', () => {
  test.each([
    ['sum by (policy (rate(sluice_decisions_total[5m]))', 'a bracket is missing'],
    ['sum(rate(sluice_decisions_total))', 'a rate has no range'],
    ['sum(sluice_decisions_total[5m])', 'a sum has a range'],
    ['sluice_decisions_total{policy=login}', 'a text has no quotes'],
    ['sluice_decisions_total{policy=~"("}', 'a regular expression is invalid'],
    ['rates(sluice_decisions_total[5m])', 'a function does not exist'],
    ['1 > 0', 'a comparison of numbers has no bool'],
    ['rate(sluice_decisions_total[5m]) and 1', 'a set operator has a number'],
    ['rate(sluice_decisions_total[5m]) 1', 'an operator is missing'],
  ])('It refuses %s, because %s.', (source) => {
    expect(() => parsePromql(source)).toThrow()
  })

  test.each([
    ['sluice_decision_total', 'sluice_decision_total'],
    ['sluice_near_limit_total{outcome="limited"}', 'sluice_near_limit_total{outcome}'],
    ['sum by (code) (rate(sluice_decisions_total[5m]))', 'code'],
  ])('Of %s, the name %s is not listed.', (source, name) => {
    expect(unknownNames(source)).toEqual([name])
  })
})
