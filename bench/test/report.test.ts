import { expect, test } from 'vitest'
import { panelsOf } from '../stack/report/panels.ts'
import { parallelText } from '../stack/report/parallel.ts'
import { shieldText } from '../stack/report/shield.ts'
import { draw } from '../stack/report/svg.ts'
import { digits, signed, withSign, withSpread } from '../stack/report/table.ts'
import { targetsText } from '../stack/report/targets.ts'
import { workloadTable } from '../stack/report/workload.ts'
import { judge, targets } from '../stack/targets.ts'
import { exists, type VariantId, variants } from '../stack/variants.ts'
import { workloads } from '../stack/workloads.ts'
import { results, sample } from './samples.ts'

const workload = (id: string) => workloads.find((one) => one.id === id)!
const target = (of: string, title: string) =>
  targets.find((one) => one.of.startsWith(of) && one.title.startsWith(title))!

test.each([
  [0, '0'],
  [0.0002, '< 0.001'],
  [0.0037, '0.004'],
  [1.046, '1.05'],
  [12.56, '12.6'],
  [1529.7, '1530'],
])('The number %d is formatted as %s.', (value, text) => {
  expect(digits(value)).toBe(text)
})

test('A value shows its spread if there is one, and a difference has a sign.', () => {
  expect(withSpread({ median: 1.05, min: 1.01, max: 1.12 })).toBe('1.05 (1.01–1.12)')
  expect(withSpread({ median: 4, min: 4, max: 4 })).toBe('4.00')
  expect(withSpread(undefined)).toBe('–')
  expect(signed(-0.1)).toBe('−0.10')
  expect(withSign({ median: 0.2, min: -0.1, max: 0.4 })).toBe('+0.20 (−0.10 to +0.40)')
})

test('A row shows the difference from the bare GET, and the price.', () => {
  const text = workloadTable(workload('closed-64'), {
    bare: [sample({ billed: 1 })],
    ours: [sample({ p50: 10.2, calls: 0.05, billed: 1.4, workerUs: 55 })],
  })
  const row = text.split('\n').find((line) => line.startsWith('| Sluice, default settings'))
  expect(row).toBe(
    '| Sluice, default settings | 100 | +0.20 | +0.00 | +0.00 | 0.050 | 1.40 | 2.80 | 55 | 0.55 | 5.0 |',
  )
})

test('The report warns about failed requests and an overloaded load generator.', () => {
  const text = workloadTable(workload('closed-64'), {
    bare: [sample()],
    hono: [sample({ statuses: { 200: 990, 500: 10 }, busy: 0.95, lateMs: 3 })],
  })
  expect(text).toContain('hono-rate-limiter: 10 requests were neither admitted nor refused.')
  expect(text).toContain('hono-rate-limiter: the load generator used 95 % of a CPU.')
  expect(text).toContain('1 % of the requests were sent more than 3.0 ms late.')
})

test('A target is met at its limit, missed above it, and not measured without data.', () => {
  const cpu = target('64 at once', 'Worker CPU, relative')
  const run = (workerUs: number) =>
    results({ workloads: { 'closed-64': { bare: [sample()], ours: [sample({ workerUs })] } } })
  expect(judge(cpu, run(55))).toEqual([0.55, 'met'])
  expect(judge(cpu, run(56))).toEqual([0.56, 'not met'])
  expect(judge(cpu, results())).toEqual([undefined, 'not measured'])
})

test('A target of a missing variant uses the value of the default settings.', () => {
  const refused = target('A flood', 'billed commands, refused by Redis')
  const flood = { ours: [sample({ billed: 3 })] }
  expect(refused.read(results({ workloads: { flood } }))).toBe(3)
  const cached = { ours: [sample({ billed: 0 })], 'ours-plain': [sample({ billed: 3 })] }
  expect(refused.read(results({ workloads: { flood: cached } }))).toBe(3)
})

test('An over-admitted request of Sluice misses the target; one of a peer does not.', () => {
  const exact = target('Exactness', 'over- and under-admitted')
  const leg = (id: VariantId, over: number) => ({
    id,
    asked: 1,
    admitted: 1,
    over,
    under: 0,
    failed: 0,
  })
  expect(judge(exact, results({ exactness: [leg('ours', 0), leg('hono', 7)] }))[1]).toBe('met')
  expect(judge(exact, results({ exactness: [leg('ours', 0), leg('ours-log', 1)] }))[1]).toBe(
    'not met',
  )
})

test('The table has a row for each target.', () => {
  const lines = targetsText(results()).split('\n').slice(2)
  expect(lines).toHaveLength(targets.length)
  for (const line of lines) expect(line).toMatch(/\| – \| not measured \|$/)
})

test('The picture escapes its texts and describes its values in words.', () => {
  const bars = [{ label: 'a & b', by: 'ours' as const, value: 2, min: 1, max: 3 }]
  const svg = draw('a & b', [{ title: 'x < y', subtitle: '', bars }])
  expect(svg).toContain('x &lt; y: a &amp; b 2.00.')
  expect(svg).not.toContain('NaN')
})

test('The picture shows only measured variants.', () => {
  expect(panelsOf(results())).toEqual([])
  const flood = { nothing: [sample()], ours: [sample({ workerUs: 110 })] }
  const [panel] = panelsOf(results({ workloads: { flood } }))
  expect(panel?.bars.map(({ value }) => value)).toEqual([1, 1.1])
})

test('The report shows the latency of an origin and the effect of a shield if they were measured.', () => {
  const parallel = {
    'ours-origin': [sample({ p50: 21 })],
    'ours-before': [sample({ p50: 33 })],
    'ours-parallel': [sample({ p50: 21.5 })],
  }
  expect(parallelText(results({ parallel }))).toContain(
    "| Sluice, check: 'parallel' | 21.5 | +0.50 | +0.00 |",
  )
  const shield = { requests: 20_000, refused: 20_000, reached: 0.001 }
  expect(shieldText(shield)).toContain('0.10 % reached Redis')
  expect(shieldText({ ...shield, reached: undefined })).toContain('the result is not valid')
  const measured = results({ parallel, shield })
  const [latency, reached] = [target('An origin', 'p50 over'), target('A flood on 20,000', 'share')]
  expect([judge(latency, measured), judge(reached, measured)]).toEqual([
    [0.5, 'met'],
    [0.001, 'met'],
  ])
  expect(judge(reached, results({ shield: { ...shield, reached: undefined } }))[1]).toBe(
    'not measured',
  )
})

test('Each workload names existing variants.', () => {
  for (const { variants: ids } of workloads) {
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toContain('bare')
  }
  expect(exists('ours') && exists('ours-gcra') && exists('hono')).toBe(true)
  expect(
    variants['ours-one'].settings([1, 2].map((limit) => ({ limit, windowMs: 1000 }))),
  ).toMatchObject({ policies: [{ limit: 1 }] })
})
