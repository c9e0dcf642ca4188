import type { DecidedBy, DecisionOutcome } from '../../src/features/observe/event.ts'
import type { Series, Stats } from '../../src/features/observe/report.ts'

export const seriesOf = (
  policy: string,
  outcome: DecisionOutcome,
  decisions: number,
  decidedBy: DecidedBy = 'store',
): Series => ({ policy, outcome, decidedBy, decisions, units: decisions, near: 0 })

/** Counts of one isolate: 1,000 requests, of which 600 in the last minute. */
export function statsAt(now: number): Stats {
  const slot = Math.floor(now / 10_000) * 10_000
  const series = [
    seriesOf('per-ip', 'allowed', 700),
    seriesOf('per-ip', 'limited', 150),
    seriesOf('per-ip', 'limited', 50, 'cache'),
    seriesOf('login', 'banned', 60),
    seriesOf('', 'denied', 40, 'list'),
  ]
  const part = (share: number) =>
    series.map((one) => ({ ...one, decisions: one.decisions * share }))
  return {
    v: 1,
    now,
    total: {
      from: now - 3_600_000,
      to: now,
      series,
      offenders: [
        { policy: 'per-ip', subject: '3q2-7wAAAAAAAAAA', refusals: 120, error: 0 },
        { policy: 'login', subject: 'x5f1zAAAAAAAAAAA', refusals: 60, error: 12 },
      ],
      store: {
        calls: 500,
        billedCommands: 2000,
        errors: { timeout: 3 },
        latency: { bounds: [1, 2, 5, 10, 50], counts: [10, 300, 150, 30, 8, 2], sum: 2000 },
      },
    },
    slots: [
      { from: slot - 300_000, to: slot - 290_000, series: part(0.4) },
      { from: slot - 20_000, to: slot - 10_000, series: part(0.5) },
      { from: slot, to: slot + 10_000, series: part(0.1) },
    ],
    circuit: 'closed',
    answeredAt: now - 1_500,
    lastMinute: { decisions: 600, fallbacks: 0 },
    fallbacks: 3,
    dropped: { log: 2 },
  }
}
