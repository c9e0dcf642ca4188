/** The counters of a report, which the endpoint and the sink of OpenTelemetry write. */
import type { Counts } from './report.ts'

export type Labels = Record<string, string>
export type Points = [labels: Labels, value: number][]

/** By the name in OpenTelemetry, without `sluice.`: what is counted, in the singular, and the help text. */
export const counters = {
  decisions: ['decision', 'Decisions. The policy is empty if none applies.'],
  units: ['unit', 'The units that the decided requests cost.'],
  near_limit: ['decision', 'Decisions after which at least 80 % of the quota was used.'],
  'store.calls': ['call', 'HTTP requests to the store.'],
  'store.billed_commands': ['command', 'Commands that Upstash bills.'],
  'store.errors': ['error', 'Failed calls to the store.'],
} as const

type CounterName = keyof typeof counters

export function pointsOf({ series, store }: Counts): [CounterName, Points][] {
  const bySeries = (count: 'decisions' | 'units'): Points =>
    series.map(({ policy, outcome, decidedBy: decided_by, [count]: value }) => [
      { policy, outcome, decided_by },
      value,
    ])
  const near = new Map<string, number>()
  for (const one of series) near.set(one.policy, (near.get(one.policy) ?? 0) + one.near)
  return [
    ['decisions', bySeries('decisions')],
    ['units', bySeries('units')],
    ['near_limit', [...near].map(([policy, count]) => [{ policy }, count])],
    ['store.calls', [[{}, store.calls]]],
    ['store.billed_commands', [[{}, store.billedCommands]]],
    ['store.errors', Object.entries(store.errors).map(([code, count]) => [{ code }, count])],
  ]
}
