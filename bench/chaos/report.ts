import type { Figures } from './figures.ts'
import { DEADLINE_MS, LIMIT, SHARE } from './policies.ts'
import type { ChaosReport } from './run.ts'

/** What every phase is held to. */
const MAX_SLOWEST_MS = DEADLINE_MS + 50
const MAX_RECOVERY_SECONDS = 2
const MIN_RATE = 200

const columns: [title: string, cell: (figures: Figures) => string][] = [
  ['Redis', ({ phase }) => phase],
  ['requests', ({ requests }) => String(requests)],
  ['undeclared 5xx', ({ errors }) => String(errors)],
  ['fallback', ({ fallback }) => String(fallback)],
  ['slowest', ({ slowestMs }) => `${Math.round(slowestMs)} ms`],
  ['less stall', ({ slowestLessStallMs }) => `${Math.round(slowestLessStallMs)} ms`],
  ['over-admitted', ({ overAdmitted, keys }) => `${overAdmitted} (${keys} keys)`],
  ['beyond share', (row) => `${row.localOverAdmitted} (${row.localKeys} keys)`],
  ['recovered in', ({ recoverySeconds }) => inSeconds(recoverySeconds)],
  ['less stall', (row) => inSeconds(row.recoveryLessStallSeconds)],
]

const inSeconds = (seconds: number | undefined) =>
  seconds === undefined ? '' : `${seconds.toFixed(2)} s`

/** The figures, for people. */
export function table({ phases, rate }: ChaosReport): string {
  const rows = [columns.map(([title]) => title), columns.map(() => '---')]
  for (const figures of phases) rows.push(columns.map(([, cell]) => cell(figures)))
  return `${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}

${Math.round(rate)} requests a second. Marks: no undeclared 5xx; recovered within ${MAX_RECOVERY_SECONDS} s; slowest at most ${MAX_SLOWEST_MS} ms,
less stall (for which the machine stood still); no hot key beyond its ${LIMIT}, nor its isolate's share of ${SHARE}.`
}

/** The marks that were missed, a line each. */
export function misses({ phases, rate }: ChaosReport): string[] {
  return [
    ...(rate < MIN_RATE ? [`only ${Math.round(rate)} requests a second, not ${MIN_RATE}`] : []),
    ...phases.flatMap(missesOf),
  ]
}

function missesOf(figures: Figures): string[] {
  const { phase, errors, slowestLessStallMs, keys, overAdmitted, localOverAdmitted } = figures
  const recovered = figures.recoverySeconds
  const missed: [boolean, string][] = [
    [errors > 0, `${errors} answers were 5xx, or none came`],
    [
      slowestLessStallMs > MAX_SLOWEST_MS,
      `an answer took ${Math.round(slowestLessStallMs)} ms, not at most ${MAX_SLOWEST_MS}`,
    ],
    [keys === 0, 'no hot key could be held to its limit'],
    [overAdmitted > 0, `hot keys admitted ${overAdmitted} beyond their limit`],
    [localOverAdmitted > 0, `isolates admitted ${localOverAdmitted} beyond their share`],
    [
      (recovered ?? 0) > MAX_RECOVERY_SECONDS,
      `recovered in ${inSeconds(recovered)}, not ${MAX_RECOVERY_SECONDS}`,
    ],
  ]
  return missed.filter(([is]) => is).map(([, text]) => `${phase}: ${text}`)
}
