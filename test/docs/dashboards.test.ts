/** The dashboards in examples/grafana have the shape that Grafana needs, and name only series and columns that exist. */
import { readdirSync } from 'node:fs'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { read as readText, root } from '../support/pages.ts'
import { bareCounters, listed, unknownNames } from '../support/series.ts'
import { runAnalyticsQuery } from './analytics-queries.ts'

const atLeast = (least: number) => v.pipe(v.number(), v.integer(), v.minValue(least))
const someText = v.pipe(v.string(), v.minLength(1))
const datasource = v.object({ type: v.string(), uid: v.literal('$datasource') })
const target = v.looseObject({ refId: v.pipe(v.string(), v.regex(/^[A-Z]$/)), datasource })
const panel = v.looseObject({
  id: atLeast(1),
  type: v.picklist(['stat', 'timeseries', 'table']),
  title: someText,
  description: someText,
  datasource,
  gridPos: v.strictObject({ x: atLeast(0), y: atLeast(0), w: atLeast(1), h: atLeast(1) }),
  fieldConfig: v.looseObject({
    defaults: v.looseObject({ unit: v.string() }),
    overrides: v.array(v.unknown()),
  }),
  options: v.looseObject({}),
  targets: v.pipe(v.array(target), v.minLength(1)),
})
const variable = v.looseObject({
  name: v.pipe(v.string(), v.regex(/^\w+$/)),
  type: v.picklist(['datasource', 'query', 'textbox']),
  query: v.union([v.string(), v.looseObject({ query: v.string(), refId: v.string() })]),
  current: v.looseObject({}),
})
/** What Grafana 10 and later import: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/ */
const dashboard = v.looseObject({
  id: v.null(),
  uid: v.pipe(v.string(), v.regex(/^[\w-]{1,40}$/)),
  title: someText,
  schemaVersion: atLeast(36),
  version: v.number(),
  tags: v.array(v.string()),
  time: v.strictObject({ from: v.string(), to: v.string() }),
  refresh: v.pipe(v.string(), v.regex(/^\d+[smh]$/)),
  templating: v.strictObject({ list: v.array(variable) }),
  annotations: v.strictObject({ list: v.array(v.unknown()) }),
  panels: v.pipe(v.array(panel), v.minLength(1)),
})

const folder = 'examples/grafana/'
const files = readdirSync(root + folder)
/** Throws unless the file has the shape that Grafana imports. */
const read = (file: string) => v.parse(dashboard, JSON.parse(readText(folder + file)))
const textOf = ({ query }: v.InferOutput<typeof variable>) =>
  typeof query === 'string' ? query : query.query

test('There are two dashboards.', () => {
  expect(files).toEqual(['analytics-engine.json', 'prometheus.json'])
})

describe.each(files)('The dashboard %s', (file) => {
  test('It has the shape that Grafana imports.', () => void read(file))

  test('Each panel has its own id, and its targets have letters of their own.', () => {
    const { panels } = read(file)
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    for (const { targets } of panels) {
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length)
    }
  })

  test('The panels fit into 24 columns and do not overlap.', () => {
    const cells = new Map<string, string>()
    for (const { title, gridPos } of read(file).panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(cells.get(`${x} ${y}`), title).toBeUndefined()
          cells.set(`${x} ${y}`, title)
        }
      }
    }
  })

  test('Every data source is the variable, with the type that the variable selects.', () => {
    const { templating, panels } = read(file)
    const type = textOf(templating.list.find((one) => one.type === 'datasource')!)
    const sources = [
      ...panels.flatMap((one) => [one.datasource, ...one.targets.map((each) => each.datasource)]),
      ...templating.list.flatMap((one) => (one.datasource ? [one.datasource] : [])),
    ]
    for (const source of sources) expect(source).toEqual({ type, uid: '$datasource' })
  })

  test('Every variable in a query is a variable of the dashboard or a macro.', () => {
    const { templating, panels } = read(file)
    const known = [...templating.list.map(({ name }) => name), '__rate_interval']
    const macros = file.startsWith('analytics') ? ['from', 'to', 'interval'] : []
    const queries = [
      ...panels.flatMap(({ targets }) => targets.map(({ expr, query }) => String(expr ?? query))),
      ...templating.list.map(textOf),
    ]
    const used = queries.flatMap((query) =>
      [...query.matchAll(/\$(?:\{(\w+)[^}]*\}|(\w+))/g)].map(([, one, other]) => one ?? other!),
    )
    expect(used.length).toBeGreaterThan(panels.length)
    expect(used.filter((name) => ![...known, ...macros].includes(name))).toEqual([])
  })
})

describe('The queries for Prometheus', () => {
  const { panels, templating } = read('prometheus.json')
  const expressions = panels.flatMap(({ title, targets }) =>
    targets.map(({ refId, expr }) => [`${title} ${refId}`, String(expr)] as const),
  )

  test.each(expressions)('The query of %s is valid, and names listed series only.', (_, source) => {
    expect(unknownNames(source)).toEqual([])
    expect(bareCounters(source)).toEqual([])
  })

  test('A panel shows every listed series, except the times.', () => {
    const all = expressions.map(([, source]) => source).join('\n')
    const missing = listed.filter(({ name }) => !all.includes(name)).map(({ name }) => name)
    expect(missing.filter((name) => !name.endsWith('_timestamp_seconds'))).toEqual([])
  })

  test('Each variable has the values of a label that its series has.', () => {
    for (const one of templating.list.filter(({ type }) => type === 'query')) {
      const [, selector, label] = /^label_values\((.+), (\w+)\)$/.exec(textOf(one))!
      expect(unknownNames(`sum by (${label}) (rate(${selector}[1m]))`)).toEqual([])
    }
  })
})

describe('The queries for the Analytics Engine', () => {
  const { panels, templating } = read('analytics-engine.json')
  const queryOf = (title: string) =>
    String(panels.find((one) => one.title === title)!.targets[0]!.query)

  test.each(panels.map(({ title }) => title))('The query of %s returns rows.', (title) => {
    expect(runAnalyticsQuery(queryOf(title)).length).toBeGreaterThan(0)
  })

  test.each([
    ['Decisions', [{ decisions: 200 }]],
    ['Refused', [{ refused: 0.25 }]],
    ['Fallbacks', [{ fallbacks: 10 }]],
    ['Billed commands of a decision', [{ commands: 3 }]],
    ['Redis bill', [{ dollars: 0.0012 }]],
    ['Mean duration of calls', [{ ms: 8 }]],
    [
      'Clients with the most refusals',
      [
        { policy: 'per-ip', subject: 'AbCdEfGh01234567', refusals: 36, error: 2 },
        { policy: 'login', subject: 'zyxwvutsrqponmlk', refusals: 10, error: 0 },
      ],
    ],
  ])('The panel %s shows what was counted.', (title, rows) => {
    expect(runAnalyticsQuery(queryOf(title))).toEqual(rows)
  })

  test('A series of a chart has a time in milliseconds, and the rate in each interval.', () => {
    const rows = runAnalyticsQuery(queryOf('Decisions by outcome'))
    const perSecond = (outcome: string) =>
      rows
        .filter((row) => row.outcome === outcome)
        .map(({ t, decisions }) => [Number(t) % 60_000, decisions])
    expect(perSecond('allowed')).toEqual([[0, 140 / 60]])
    expect(perSecond('limited')).toEqual([
      [0, 30 / 60],
      [0, 10 / 60],
    ])
  })

  test('The variable of policies leaves out decisions without a policy.', () => {
    const policy = templating.list.find(({ name }) => name === 'policy')!
    expect(runAnalyticsQuery(textOf(policy))).toEqual([
      { policy: 'login' },
      { policy: 'old' },
      { policy: 'per-ip' },
    ])
  })
})
