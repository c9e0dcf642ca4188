import type { Counts, Series } from '../../src/features/observe/report.ts'

/** Counts with every field filled. */
export const observedCounts = (changes: Partial<Counts> = {}): Counts => ({
  from: 1_790_000_000_000,
  to: 1_790_000_010_000,
  series: [
    oneSeries({ decisions: 120, units: 240, near: 12 }),
    oneSeries({ outcome: 'limited', decidedBy: 'cache', decisions: 7, units: 14, near: 7 }),
    oneSeries({ policy: '', decidedBy: 'list', decisions: 3, units: 0 }),
  ],
  offenders: [
    { policy: 'api', subject: 'AbCdEfGh01234567', refusals: 5, error: 1 },
    { policy: 'api', subject: 'zzzzzzzzzzzzzzzz', refusals: 2, error: 0 },
  ],
  store: {
    calls: 100,
    billedCommands: 302,
    errors: { timeout: 2 },
    latency: { bounds: [5, 10, 50], counts: [60, 30, 9, 1], sum: 812.5 },
  },
  ...changes,
})

export const oneSeries = (changes: Partial<Series> = {}): Series => ({
  policy: 'api',
  outcome: 'allowed',
  decidedBy: 'store',
  decisions: 1,
  units: 1,
  near: 0,
  ...changes,
})

/** Counts of nothing. */
export const noCounts = (changes: Partial<Counts> = {}): Counts => ({
  ...observedCounts(),
  series: [],
  offenders: [],
  store: {
    calls: 0,
    billedCommands: 0,
    errors: {},
    latency: { bounds: [5], counts: [0, 0], sum: 0 },
  },
  ...changes,
})
