/** Hand-made decisions about lines of a log, and reports of them. */
import type { Decided, Verdict } from '../../cli/replay/decide/verdict.ts'
import type { LogLine } from '../../cli/replay/line.ts'
import { createTally, type ReportContext } from '../../cli/replay/report/tally.ts'
import type { ReplayReport, Source, Suggestion } from '../../cli/replay/report/types.ts'

export const START = Date.UTC(2026, 10, 23, 10, 0, 0)

/** A line `seconds` after the start. */
export const lineAt = (seconds: number, more: Partial<LogLine> = {}): LogLine => ({
  time: START + seconds * 1000,
  ip: '203.0.113.7',
  method: 'GET',
  target: '/',
  status: 200,
  ...more,
})

export const verdict = (
  policies: string[],
  refusedBy: string[] = [],
  shadowRefusedBy: string[] = [],
): Verdict => ({
  allowed: refusedBy.length === 0,
  by: 'policies',
  policies,
  refusedBy,
  shadowRefusedBy,
})

export const ADMITTED = verdict(['per-ip'])
export const REFUSED = verdict(['per-ip'], ['per-ip'])

export const decidedAs = (line: LogLine, spread: Verdict, burst = spread): Decided => ({
  line,
  spread,
  burst,
})

export const sourceOf = (more: Partial<Source> = {}): Source => ({
  files: ['access.log'],
  format: 'Combined Log Format',
  wholeSeconds: true,
  lines: 10,
  unparsed: 0,
  withoutRequest: 0,
  firstUnparsed: [],
  late: 0,
  interrupted: false,
  ...more,
})

export const contextOf = (more: Partial<ReportContext> = {}): ReportContext => ({
  source: sourceOf(),
  config: 'sluice.config.ts',
  engine: 'memory',
  notReplayed: [],
  notes: [],
  ...more,
})

export const PER_IP = { name: 'per-ip', mode: 'enforce' } as const

export const SUGGESTION: Suggestion = {
  policy: 'per-ip',
  countedBy: 'ip',
  keys: 1000,
  peaks: [
    {
      windowMs: 60_000,
      p50: 3,
      p90: 20,
      p99: 60,
      p999: 400,
      max: 900,
      curve: [
        { limit: 1, keys: 990 },
        { limit: 10, keys: 200 },
        { limit: 100, keys: 4 },
        { limit: 900, keys: 0 },
      ],
    },
  ],
  refuse: 0.001,
  suggested: { limit: 400, windowMs: 60_000, refusedKeys: 1 },
  gap: { below: 178, above: 900, highest: [60, 178, 900] },
  refused: [{ client: '203.0.113.7', peak: 900 }],
  text: "{\n  name: 'per-ip',\n  limit: 400,\n  mode: 'shadow',\n}",
}

/** A user agent, a path and a name that would do harm as markup or in a terminal. */
export const HOSTILE = `<img src=x onerror="document.title=1"></script><script>alert(1)</script>&'\u001b[2J\u202e`

/** The titles of the sections of `fullReport()`. */
export const SECTIONS = [
  'Summary',
  'Policies',
  'Clients with the most refusals',
  'Changes against old.config.ts',
  'A limit for per-ip',
  'The log',
]

/** A report with all of its parts, in which a hostile client has the most refusals. */
export function fullReport(): ReplayReport {
  const tally = createTally({ policies: [PER_IP, { name: 'new', mode: 'shadow' }] })
  const lines = Array.from({ length: 300 }, (_, n) =>
    n % 3 === 0
      ? lineAt(n, { userAgent: HOSTILE, target: `/${HOSTILE}`, country: '<b>', asn: HOSTILE })
      : lineAt(n, { ip: `2001:db8:${n}::1`, status: n % 10 === 0 ? 429 : 200 }),
  )
  const shadow = verdict(['per-ip', 'new'], [], ['new'])
  tally.add(
    lines.map((line, n) =>
      decidedAs(
        line,
        n % 9 === 0 ? REFUSED : n % 50 === 1 ? shadow : ADMITTED,
        n % 3 === 0 ? REFUSED : ADMITTED,
      ),
    ),
    lines.map((line, n) => decidedAs(line, n % 7 === 0 ? REFUSED : ADMITTED)),
  )
  return tally.result(
    contextOf({
      source: sourceOf({
        files: [HOSTILE],
        unparsed: 1,
        late: 2,
        firstUnparsed: [{ file: 'access.log', line: 7, reason: 'no time', text: HOSTILE }],
      }),
      notReplayed: [{ policy: 'per-user', reason: HOSTILE }],
      notes: ['A note.'],
      against: { config: 'old.config.ts', engine: 'redis', notReplayed: [] },
      suggestion: SUGGESTION,
    }),
  )
}
