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

const dollars = (billed: number) => (billed * 1e6 * DOLLARS) / 100_000
const percent = (share: number) => `${digits(share * 100)} %`

export function picture(results: Simulated[]): string {
  const panel = (title: string, subtitle: string, read: (one: Simulated) => number) => ({
    title,
    subtitle,
    bars: results.map((one) => {
      const value = read(one)
      const by = one.way === 'one call per decision' ? ('floor' as const) : ('ours' as const)
      return { label: `${one.isolates}: ${one.way}`, by, value, min: value, max: value }
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
