import { draw } from '../stack/report/svg.ts'
import { digits, table } from '../stack/report/table.ts'
import type { Simulated } from './run.ts'

/** Commands per second of one Upstash database, and the price of 100,000 commands in dollars. */
const DATABASE = 10_000
const DOLLARS = 0.2

/** Explains the columns on the console. The documentation has a longer text. */
export const LEGEND = `requests/s          over all isolates
HTTP calls          HTTP requests to the database per decision
billed commands     per decision, including those inside scripts; $ per million: their price for a million decisions
databases           Upstash databases of ${DATABASE} commands per second that the load needs
over                requests admitted beyond a limit
under               share of the due requests that were not admitted
p50 / p99           latency of a decision`

/** Explains the columns about masters. */
export const MASTERS_LEGEND = `decisions/s, calls/s  decisions that reach a master, and calls of the script: a call has one slot
imbalance             calls of the busiest master, relative to the mean`

export function text(results: Simulated[]): string {
  const lines = results.map(
    ({ isolates, colos, rps, way, calls, billed, commands, over, under, p50, p99 }) => [
      isolates,
      colos,
      rps,
      way,
      digits(calls),
      digits(billed),
      digits(dollars(billed)),
      Math.ceil(commands / DATABASE),
      over,
      percent(under),
      `${p50.toFixed(0)} / ${p99.toFixed(0)}`,
    ],
  )
  const head = [
    'isolates',
    'data centres',
    'requests/s',
    'mode',
    'HTTP calls',
    'billed commands',
    '$ per million',
    'databases',
    'over',
    'under',
    'p50 / p99, ms',
  ]
  return table(head, lines)
}

/** The load of each master of a cluster. Empty without a cluster. */
export function mastersText(results: Simulated[]): string {
  const clusters = results.filter(({ loads }) => loads.length > 0)
  if (clusters.length === 0) return ''
  const lines = clusters.map(({ isolates, rps, way, loads }) => {
    const runs = loads.map((load) => load.runs)
    const mean = runs.reduce((sum, one) => sum + one, 0) / runs.length
    const most = Math.max(...runs)
    const decisions = loads.reduce((sum, one) => sum + one.decisions, 0) / loads.length
    const each = runs.map((one) => `${((one / mean) * 100).toFixed(0)} %`).join(', ')
    return [
      isolates,
      rps,
      way,
      loads.length,
      ...[decisions, mean, most].map((value) => value.toFixed(0)),
      `${digits(most / mean)} ×`,
      each,
    ]
  })
  const head = [
    'isolates',
    'requests/s',
    'mode',
    'masters',
    'decisions/s of a master',
    'calls/s of a master',
    'calls/s of the busiest',
    'imbalance',
    'calls of each master, of the mean',
  ]
  return table(head, lines)
}

const dollars = (billed: number) => (billed * 1e6 * DOLLARS) / 100_000
const percent = (share: number) => `${digits(share * 100)} %`

export function picture(results: Simulated[]): string {
  const panel = (title: string, subtitle: string, read: (one: Simulated) => number) => ({
    title,
    subtitle,
    bars: results.map((one) => {
      const value = read(one)
      const by = one.way === 'one call per decision' ? ('floor' as const) : ('ours' as const)
      return { label: `${one.isolates}: ${one.way}`, by, value, low: value, high: value }
    }),
  })
  return draw('How the bill grows with isolates', [
    panel('Billed commands', 'per decision, by isolates', ({ billed }) => billed),
    panel('HTTP calls', 'per decision', ({ calls }) => calls),
    panel(
      'Databases',
      `with ${DATABASE} commands per second`,
      ({ commands }) => commands / DATABASE,
    ),
    panel('Unused quota', '% of the due requests', ({ under }) => under * 100),
  ])
}
