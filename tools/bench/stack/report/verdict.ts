import { spread } from '../../statistics.ts'
import type { Results } from '../results.ts'
import { judgeRuns, type LimiterId, limiters, type Row, rows, type Verdict } from '../verdict.ts'
import { alignedTable, digits, signed, withSign, withSpread } from './table.ts'

/** How several runs are judged: see {@link judgeRuns}. */
const RULE = 'A row is better or worse, and meets its target, only if each run says so.'

/** The first lines of the output: what was measured, Sluice, its peer, and the target. */
export function verdictText(runs: [Results, ...Results[]]): string {
  const verdicts = rows.flatMap((row) => judgeRuns(row, runs) ?? [])
  if (verdicts.length === 0) return 'No row of the verdict was measured.'
  const lines = verdicts.map((verdict) => {
    const { row, sluice, peer, again, result, isMet } = verdict
    return [
      row.what,
      shown(row, sluice.median),
      peer ? shown(row, peer.median) : '–',
      ...[verdict, ...again].map(against),
      result ?? '–',
      targetOf(row),
      isMet ? '✓ met' : '✗ missed',
    ]
  })
  const others = runs.slice(1).map(() => 'in another run')
  const compared = ['against it', ...others, 'Sluice is']
  const head = ['measured', limiters.sluice, limiters.peer, ...compared, 'target', '']
  const lost = verdicts.filter(({ result, isMet }) => result === 'worse' || !isMet)
  return [
    '### Verdict',
    [summaryOf(verdicts), ...(others.length > 0 ? [RULE] : [])].join(' '),
    alignedTable(head, lines),
    ...(lost.length > 0
      ? ['Where Sluice takes more than its peer or its target, and why:', reasonsFor(lost)]
      : []),
  ].join('\n\n')
}

/** The rows, grouped by their reason. */
const reasonsFor = (lost: Verdict[]) =>
  [...Map.groupBy(lost, ({ row }) => row.why)]
    .map(([why, list]) => `- **${list.map(({ row }) => row.what).join('; ')}.** ${why}`)
    .join('\n')

function summaryOf(verdicts: Verdict[]): string {
  const compared = verdicts.filter(({ result }) => result)
  const count = (wanted: string) => compared.filter(({ result }) => result === wanted).length
  const met = verdicts.filter(({ isMet }) => isMet).length
  return `Of ${compared.length} rows beside \`${limiters.peer}\`, Sluice is better in ${count('better')}, even in ${count('even')} and **worse in ${count('worse')}**. It meets ${met} of ${verdicts.length} targets. Less is better in every row.`
}

/** A ratio, or for times a difference, with the middle half of the rounds. */
function against({ row, against: found }: Pick<Verdict, 'row' | 'against'>): string {
  if (!found) return '–'
  return row.unit === 'ms' ? `${withSign(found)} ms` : `${withSpread(found)} ×`
}

function targetOf({ most, mostOfPeer, mostOverPeer, unit }: Row): string {
  const limits = [
    ...(most === undefined ? [] : [`${most} ${unit}`.trim()]),
    ...(mostOfPeer === undefined ? [] : [mostOfPeer === 1 ? 'peer' : `${mostOfPeer} × peer`]),
    ...(mostOverPeer === undefined ? [] : [`peer ${signed(mostOverPeer)} ${unit}`]),
  ]
  return `≤ ${limits.join(', ≤ ')}`
}

const shown = ({ unit }: Row, value: number) => `${digits(value).replace(/^-/, '−')} ${unit}`.trim()

/** The same rows for the floor and the other limiters. */
export function othersText(results: Results): string {
  const ids: LimiterId[] = ['sluice', 'floor', 'hono', 'cloudflare']
  const lines = rows.flatMap((row) => {
    const values = ids.map((id) => row.values(results, id))
    if (!values[0] || values.slice(1).every((one) => !one)) return []
    return [[row.what, ...values.map((one) => (one ? shown(row, spread(one).median) : '–'))]]
  })
  if (lines.length === 0) return ''
  return [
    "The same rows for other limiters, and for a floor that decides nothing: a Worker that sends the response of Sluice (for the batched row one that makes a single GET for all requests of 2 ms), and a script that counts in one record. Cloudflare's binding runs in Miniflare, which keeps its counters in a Durable Object: its latency and CPU are those of the simulation.",
    alignedTable(['measured', ...ids.map((id) => limiters[id])], lines),
  ].join('\n\n')
}
