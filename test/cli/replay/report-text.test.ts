import { describe, expect, test } from 'vitest'
import { gate } from '../../../cli/replay/report/gate.ts'
import { createTally } from '../../../cli/replay/report/tally.ts'
import { toText } from '../../../cli/replay/report/text.ts'
import {
  ADMITTED,
  contextOf,
  decidedAs,
  fullReport,
  lineAt,
  PER_IP,
  REFUSED,
  SECTIONS,
  sourceOf,
} from '../../support/replay-report.ts'

/** A report of 1,000 requests; the first ones are refused in both replays, the next ones in one. */
function reportOf(refused: number, maybe = 0, more = {}) {
  const tally = createTally({ policies: [PER_IP] })
  tally.add(
    Array.from({ length: 1000 }, (_, n) =>
      decidedAs(
        lineAt(n, { ip: `192.0.2.${n % 100}` }),
        n < refused ? REFUSED : ADMITTED,
        n < refused + maybe ? REFUSED : ADMITTED,
      ),
    ),
  )
  return tally.result(contextOf(more))
}

describe('the report as text', () => {
  test('The summary says how many requests of how many clients would be refused.', () => {
    const text = toText(reportOf(2))
    expect(text).toMatch(/^Replay of access\.log with sluice\.config\.ts\n\nSummary\n/)
    expect(text).toContain('  1,000 requests of 100 clients, from 2026-11-23 10:00:00 to')
    expect(text).toContain('2 of them would be refused (0.2%), to 2 of the clients.')
    expect(text).not.toContain('between')
  })

  test('Whole seconds give bounds, with the reason.', () => {
    const text = toText(reportOf(212, 28), { width: 200 })
    expect(text).toContain(
      'Between 212 and 240 of them would be refused (21.2% to 24%), to 100 of the clients.',
    )
    expect(text).toContain('The stamps of the log are whole seconds.')
    expect(text).toMatch(/per-ip +1,000 +212 to 240 +21\.2% to 24% +100 +2026-11-23 10:00:00/)
  })

  test('No refusal and an early stop are said.', () => {
    const text = toText(reportOf(0, 0, { source: sourceOf({ interrupted: true }) }))
    expect(text).toContain('No request would be refused.')
    expect(text).toContain('The replay was stopped before the end of the log.')
    expect(text).not.toContain('Clients with the most refusals')
  })

  test.each([
    [6, 2, '2 paths, most often /0 (3), /1 (3).'],
    [900, 700, 'At least 33 paths in 550 of the requests, such as /155 (at least 1), /163'],
  ])('The paths of %d requests for %d paths are one sentence.', (requests, paths, sentence) => {
    const tally = createTally({ policies: [PER_IP] })
    tally.add(
      Array.from({ length: requests }, (_, n) =>
        decidedAs(lineAt(n, { target: `/${n % paths}` }), REFUSED),
      ),
    )
    expect(toText(tally.result(contextOf()), { width: 400 })).toContain(sentence)
  })

  test('A long path or user agent is cut.', () => {
    const tally = createTally({ policies: [PER_IP] })
    const long = 'x'.repeat(10_000)
    tally.add([decidedAs(lineAt(0, { target: `/${long}`, userAgent: long }), REFUSED)])
    expect(toText(tally.result(contextOf())).length).toBeLessThan(5_000)
  })

  test('An empty log has a report.', () => {
    const report = createTally({ policies: [PER_IP] }).result(contextOf())
    expect(toText(report)).toContain('0 requests of 0 clients.')
  })

  test.each([40, 60, 80, 120, 200])('No line of a table or a plot is wider than %d.', (width) => {
    const lines = toText(reportOf(212, 28), { width }).split('\n')
    const wide = lines.filter((line) => line.length > width)
    expect(wide).toEqual([])
  })

  test('The report has a section for each of its parts.', () => {
    const text = toText(fullReport(), { width: 160 })
    const titles = text.split('\n').filter((line) => /^[A-Z]/.test(line))
    expect(titles.slice(1)).toEqual(SECTIONS)
    expect(text).toContain("    limit: 400,\n    mode: 'shadow',")
    expect(text).toContain('answered with 429 already')
    expect(text).toMatch(/1 min +3 +20 +60 +400 +900/)
  })

  test('A control character of a log does not reach the terminal.', () => {
    const text = toText(fullReport())
    expect(text).toContain('\\u{1b}[2J\\u{202e}')
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })

  test('Only a terminal gets colours.', () => {
    const text = toText(reportOf(2), { color: true })
    expect(text).toContain('\u001b[1mSummary\u001b[22m')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the sequences of colours
    expect(text.replace(/\u001b\[\d+m/g, '')).toBe(toText(reportOf(2)))
  })
})

describe('the report as JSON', () => {
  test('The JSON has the same values as the report.', () => {
    const report = fullReport()
    expect(JSON.parse(JSON.stringify(report))).toEqual(report)
    expect(report.version).toBe(1)
  })
})

describe('the gate', () => {
  test.each([
    [{}, 0],
    [{ maxRefused: 0.24 }, 0],
    [{ maxRefused: 0.2399 }, 1],
    [{ maxClients: 100 }, 0],
    [{ maxClients: 99 }, 1],
    [{ maxRefused: 0, maxClients: 0 }, 2],
  ])('With the limits %j the upper bounds give %d reasons.', (limits, reasons) => {
    expect(gate(reportOf(212, 28), limits)).toHaveLength(reasons)
  })

  test('The reasons name the numbers and the options.', () => {
    expect(gate(reportOf(1, 1), { maxRefused: 0.001, maxClients: 1 })).toEqual([
      'between 1 and 2 of 1,000 requests would be refused (0.1% to 0.2%); at most 0.1% may be (--max-refused).',
      'between 1 and 2 clients would be refused; at most 1 may be (--max-clients).',
    ])
  })

  test('An empty log passes the gate.', () => {
    const report = createTally({ policies: [PER_IP] }).result(contextOf())
    expect(gate(report, { maxRefused: 0, maxClients: 0 })).toEqual([])
  })
})
