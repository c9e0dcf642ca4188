import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { neededBy } from '../../../cli/build/module.ts'
import { warningOf } from '../../../tools/bench/stack/report/about.ts'
import { panelsOf } from '../../../tools/bench/stack/report/panels.ts'
import { reportOf, verdictOf } from '../../../tools/bench/stack/report/report.ts'
import { shieldText } from '../../../tools/bench/stack/report/shield.ts'
import { draw } from '../../../tools/bench/stack/report/svg.ts'
import { digits, signed, withSign, withSpread } from '../../../tools/bench/stack/report/table.ts'
import { targetsText } from '../../../tools/bench/stack/report/targets.ts'
import { workloadTable } from '../../../tools/bench/stack/report/workload.ts'
import { quickVariants } from '../../../tools/bench/stack/suite.ts'
import { judge, targets } from '../../../tools/bench/stack/targets.ts'
import { settingsOf, type VariantId, variants } from '../../../tools/bench/stack/variants.ts'
import { judgeRow, judgeRuns, rows } from '../../../tools/bench/stack/verdict.ts'
import { workloads } from '../../../tools/bench/stack/workloads.ts'
import { results, sample } from './samples.ts'

const workload = (id: string) => workloads.find((one) => one.id === id)!
const target = (start: string) => targets.find(({ what }) => what.startsWith(start))!

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
  expect(withSpread({ median: 1.05, low: 1.01, high: 1.12 })).toBe('1.05 (1.01–1.12)')
  expect(withSpread({ median: 4, low: 4, high: 4 })).toBe('4.00')
  expect(withSpread(undefined)).toBe('–')
  expect(signed(-0.1)).toBe('−0.10')
  expect(withSign({ median: 0.2, low: -0.1, high: 0.4 })).toBe('+0.20 (−0.10 to +0.40)')
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

test('The report warns about other load on the machine.', () => {
  expect(warningOf([0.1])).toBe('')
  expect(warningOf([1000])).toContain('do not publish these figures')
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

test('A target is met at its limit, missed above it, and absent without data.', () => {
  const billed = target('commands billed, 64 at once')
  const run = (commands: number) =>
    results({ workloads: { 'closed-64': { ours: [sample({ billed: commands })] } } })
  expect(judge(billed, run(1.5))).toEqual({ value: 1.5, isMet: true })
  expect(judge(billed, run(1.51))).toEqual({ value: 1.51, isMet: false })
  expect(judge(billed, results())).toBeUndefined()
})

describe('the verdict', () => {
  const row = (start: string) => rows.find(({ what }) => what.startsWith(start))!
  const lone = (ours: number[], peer: number[], bare = ours.map(() => 100)) => {
    const samples = (all: number[]) => all.map((workerUs) => sample({ workerUs }))
    const variants = { bare: samples(bare), ours: samples(ours), 'upstash-sliding': samples(peer) }
    return results({ workloads: { lone: variants } })
  }
  const cpu = { ...row('Worker CPU, one request'), mostOfPeer: 1 }

  test('A row compares Sluice with the peer in each round, not by their medians.', () => {
    // A slow second round affects all variants.
    const verdict = judgeRow(cpu, lone([150, 600, 130], [100, 500, 125], [100, 400, 100]))!
    expect(verdict.sluice.median).toBe(1.5)
    expect(verdict.peer!.median).toBe(1.25)
    expect(verdict.against!.median).toBe(1.2)
  })

  test.each([
    [100, 120, 'better', true],
    [120, 120.4, 'even', false],
    [123, 120, 'worse', false],
  ])('CPU of %d µs beside %d µs of the peer is %s.', (ours, peer, result, isMet) => {
    expect(judgeRow(cpu, lone([ours], [peer]))).toMatchObject({ result, isMet })
  })

  test('A row is even if half of the rounds include parity: the next run can say the opposite.', () => {
    const peer = [100, 100, 100, 100, 100]
    expect(judgeRow(cpu, lone([70, 80, 96, 110, 120], peer))).toMatchObject({ result: 'even' })
    expect(judgeRow(cpu, lone([70, 80, 96, 98, 120], peer))).toMatchObject({ result: 'better' })
  })

  test('A row with both kinds of targets needs both.', () => {
    const redis = (ours: number, peer: number) => {
      const cost = (by: string, ratio: number) => ({
        by,
        algorithm: 'sliding window',
        cpu: { admitted: [ratio], refused: [1] },
      })
      return results({ redis: [cost('Sluice', ours), cost('@upstash/ratelimit', peer)] })
    }
    const one = row('Redis CPU, one limit, admitted')
    expect(judgeRow(one, redis(7.5, 6))).toMatchObject({ result: 'worse', isMet: true })
    expect(judgeRow(one, redis(7.5, 5))).toMatchObject({ isMet: false })
    expect(judgeRow(one, redis(9, 9))).toMatchObject({ result: 'even', isMet: false })
  })

  test('Times are compared by their difference, which may be negative.', () => {
    const coldStarts = { nothing: [20, 20], ours: [45, 60], 'upstash-sliding': [50, 55] }
    const verdict = judgeRow(row('CPU of a cold start'), results({ coldStarts }))!
    expect(verdict.sluice.median).toBe(32.5)
    expect(verdict.against).toEqual({ median: 0, low: -5, high: 5 })
    expect(verdict).toMatchObject({ result: 'even', isMet: false })
  })

  test.each([
    [{ mostOverPeer: -4 }, 46, true],
    [{ mostOverPeer: -4 }, 47, false],
    [{ mostOfPeer: 0.8 }, 44, true],
    [{ mostOfPeer: 0.8 }, 45, false],
  ])(
    'With the target %j, 30 ms of the peer and %d ms in all, a target of times is met: %s.',
    (target, ours, isMet) => {
      const { mostOverPeer: _, ...times } = row('CPU of a cold start')
      const coldStarts = { nothing: [20], ours: [ours], 'upstash-sliding': [50] }
      expect(judgeRow({ ...times, ...target }, results({ coldStarts }))).toMatchObject({ isMet })
    },
  )

  test('The verdict comes first, and names the rows that are lost with the reason.', () => {
    const text = reportOf('about', lone([150], [120])).verdict
    expect(text).toMatch(/^### Verdict\n\nOf 2 rows .*worse in 1/)
    expect(text).toContain(`- **${cpu.what}.** ${cpu.why}`)
    expect(reportOf('about', lone([100], [120])).verdict).not.toContain(cpu.why)
  })

  test('Of two runs, a row is better or worse, and meets its target, only if both say so.', () => {
    const [won, lost] = [lone([60], [120]), lone([150], [120])]
    expect(judgeRuns(cpu, [won, won])).toMatchObject({ result: 'better', isMet: true })
    expect(judgeRuns(cpu, [won, lost])).toMatchObject({ result: 'even', isMet: false })
    const text = verdictOf(['about'], [won, lost])
    expect(text).toMatch(/0.50 × +\| 1.25 × +\| even/)
  })

  test('A quick run measures every row that reads a workload.', () => {
    const compared = (takes: (id: VariantId) => boolean) => {
      const samples = workloads.map(({ id, variants, verdict }) => [
        id,
        Object.fromEntries(
          variants.filter((one) => verdict && takes(one)).map((one) => [one, [sample()]]),
        ),
      ])
      const measured = results({ workloads: Object.fromEntries(samples) })
      return rows.filter((one) => judgeRow(one, measured)).map(({ what }) => what)
    }
    expect(compared((id) => quickVariants.includes(id))).toEqual(compared(() => true))
    expect(compared(() => true).length).toBeGreaterThan(10)
  })
})

test('An over-admitted request of Sluice misses the target; one of a peer does not.', () => {
  const exact = target('over- and under-admitted')
  const leg = (id: VariantId, over: number) => ({
    id,
    asked: 1,
    admitted: 1,
    over,
    under: 0,
    failed: 0,
  })
  expect(judge(exact, results({ exactness: [leg('ours', 0), leg('hono', 7)] }))?.isMet).toBe(true)
  expect(judge(exact, results({ exactness: [leg('ours', 0), leg('ours-log', 1)] }))?.isMet).toBe(
    false,
  )
})

test('The table has a row for each target that was measured.', () => {
  expect(targetsText(results())).toBe('')
  const soak = { seconds: 1, requests: 9, admitted: 9, refused: 0, hangUps: 0, failed: 1 }
  const lines = targetsText(results({ soak })).split('\n').slice(4)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(/\| 1\.00 \| ≤ 0 \| ✗ missed \|$/)
})

test('The picture escapes its texts and describes its values in words.', () => {
  const bars = [{ label: 'a & b', by: 'ours' as const, value: 2, low: 1, high: 3 }]
  const svg = draw('a & b', [{ title: 'x < y', subtitle: '', bars }])
  expect(svg).toContain('x &lt; y: a &amp; b 2.00.')
  expect(svg).not.toContain('NaN')
})

test('The label of each variant fits beside its bar in the picture.', () => {
  const ids = Object.keys(variants) as (keyof typeof variants)[]
  const flood = Object.fromEntries(ids.map((id) => [id, [sample()]]))
  const [panel] = panelsOf(results({ workloads: { flood } }))
  expect(panel!.bars).toHaveLength(ids.length)
  for (const { label } of panel!.bars) expect(label.length, label).toBeLessThanOrEqual(33)
})

test('The picture shows only measured variants.', () => {
  expect(panelsOf(results())).toEqual([])
  const flood = { nothing: [sample()], ours: [sample({ workerUs: 110 })] }
  const [panel] = panelsOf(results({ workloads: { flood } }))
  expect(panel?.bars.map(({ value }) => value)).toEqual([1, 1.1])
})

test('The report shows the effect of a shield if it was measured.', () => {
  const shield = { requests: 20_000, refused: 20_000, reached: 0.001 }
  expect(shieldText(shield)).toContain('0.10 % reached Redis')
  expect(shieldText({ ...shield, reached: undefined })).toContain('the result is not valid')
  const reached = target('share of a flood')
  expect(judge(reached, results({ shield }))).toEqual({ value: 0.001, isMet: true })
  expect(judge(reached, results({ shield: { ...shield, reached: undefined } }))).toBeUndefined()
})

test('Each workload names existing variants, and the settings of each variant are valid.', () => {
  for (const { variants: ids } of workloads) {
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toContain('bare')
  }
  for (const id of Object.keys(variants) as VariantId[])
    expect(() => settingsOf(id, [{ limit: 1, windowMs: 1000 }]), id).not.toThrow()
  expect(
    variants['ours-one'].settings([1, 2].map((limit) => ({ limit, windowMs: 1000 }))),
  ).toMatchObject({ policies: [{ limit: 1 }] })
})

test('The Worker of each variant has the features that its built settings need.', async () => {
  const folder = new URL('../../../tools/bench/stack/workers/', import.meta.url)
  const textOf = (name: string) => readFile(new URL(`${name}.ts`, folder), 'utf8')
  for (const { name, worker, build, settings } of Object.values(variants)) {
    const own = await textOf(worker)
    const text = own.includes('./limited.ts') ? own + (await textOf('limited')) : own
    const needed = build ? neededBy(build(settings([{ limit: 1, windowMs: 1000 }]))) : []
    for (const one of needed) expect(text, `${name}: ${one}`).toMatch(new RegExp(`\\b${one}\\b`))
  }
})
