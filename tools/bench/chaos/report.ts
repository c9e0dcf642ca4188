import type { Figures } from './figures.ts'
import { DEADLINE_MS, LIMIT, SHARE } from './policies.ts'
import type { ChaosReport } from './run.ts'

/** The targets of every phase. */
const MAX_SLOWEST_MS = DEADLINE_MS + 50
const MAX_RECOVERY_SECONDS = 2
const MIN_RATE = 200

const columns: [title: string, cell: (figures: Figures) => string][] = [
  ['fault', ({ phase }) => phase],
  ['requests', ({ requests }) => String(requests)],
  ['unexpected failures', ({ errors }) => String(errors)],
  ['decided by a fallback', ({ fallback }) => String(fallback)],
  ['slowest response', ({ slowestMs }) => `${Math.round(slowestMs)} ms`],
  ['without stalls', ({ slowestLessStallMs }) => `${Math.round(slowestLessStallMs)} ms`],
  ['beyond the limit', ({ overAdmitted, keys }) => `${overAdmitted} (${keys} keys)`],
  ['beyond the local share', (row) => `${row.localOverAdmitted} (${row.localKeys} keys)`],
  ['recovery', ({ recoverySeconds }) => inSeconds(recoverySeconds)],
  ['without stalls', (row) => inSeconds(row.recoveryLessStallSeconds)],
]

const inSeconds = (seconds: number | undefined) =>
  seconds === undefined ? '' : `${seconds.toFixed(2)} s`

/** The results as a Markdown table, with the meaning of the columns. */
export function table({ phases, rate }: ChaosReport): string {
  const rows = [columns.map(([title]) => title), columns.map(() => '---')]
  for (const figures of phases) rows.push(columns.map(([, cell]) => cell(figures)))
  return `${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}

${Math.round(rate)} requests per second.

decided by a fallback  requests that the store did not decide in time
unexpected failures    no response, or a 5xx other than the 503 of onStoreError: 'deny'. Target: 0
slowest response       target, without stalls: at most ${MAX_SLOWEST_MS} ms
without stalls         the value to the left, less the time for which this machine was stalled
beyond the limit       requests that the store admitted beyond the ${LIMIT} of a hot key. Target: 0
beyond the local share requests that an isolate admitted by itself beyond ${SHARE} for a hot key. Target: 0
recovery               time from the end of the fault until the store decides again. Target: at most ${MAX_RECOVERY_SECONDS} s`
}

/** The missed targets, one line each. */
export function misses({ phases, rate }: ChaosReport): string[] {
  return [
    ...(rate < MIN_RATE
      ? [`the load had ${Math.round(rate)} requests per second; the minimum is ${MIN_RATE}`]
      : []),
    ...phases.flatMap(missesOf),
  ]
}

function missesOf(figures: Figures): string[] {
  const { phase, errors, slowestLessStallMs, keys, overAdmitted, localOverAdmitted } = figures
  const recovered = figures.recoverySeconds
  const missed: [boolean, string][] = [
    [errors > 0, `${errors} requests got no response or an unexpected 5xx`],
    [
      slowestLessStallMs > MAX_SLOWEST_MS,
      `a response took ${Math.round(slowestLessStallMs)} ms; the maximum is ${MAX_SLOWEST_MS} ms`,
    ],
    [keys === 0, 'the store decided no hot key, so the limit was not tested'],
    [overAdmitted > 0, `hot keys admitted ${overAdmitted} requests beyond their limit`],
    [localOverAdmitted > 0, `isolates admitted ${localOverAdmitted} requests beyond their share`],
    [
      (recovered ?? 0) > MAX_RECOVERY_SECONDS,
      `the recovery took ${inSeconds(recovered)}; the maximum is ${MAX_RECOVERY_SECONDS} s`,
    ],
  ]
  return missed.filter(([is]) => is).map(([, text]) => `${phase}: ${text}`)
}
