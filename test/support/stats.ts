import type { Stats } from '../../src/features/observe/report.ts'

/** The counts of an isolate, made by hand. */
export const someStats = (): Stats => ({
  v: 1,
  now: 1_795_305_360_500,
  total: {
    from: 1_795_305_300_250,
    to: 1_795_305_360_500,
    series: [
      {
        policy: 'per-ip',
        outcome: 'allowed',
        decidedBy: 'store',
        decisions: 90,
        units: 95,
        near: 18,
      },
      { policy: 'per-ip', outcome: 'limited', decidedBy: 'cache', decisions: 7, units: 8, near: 7 },
      { policy: 'login', outcome: 'banned', decidedBy: 'store', decisions: 3, units: 3, near: 0 },
      { policy: '', outcome: 'allowed', decidedBy: 'list', decisions: 40, units: 0, near: 0 },
    ],
    offenders: [{ policy: 'per-ip', subject: 'abcdefghijkl-_09', refusals: 7, error: 0 }],
    store: {
      calls: 96,
      billedCommands: 384,
      errors: { timeout: 2, unreachable: 1 },
      latency: { bounds: [1, 2.5, 5, 1000, 2000], counts: [10, 20, 0, 60, 4, 2], sum: 12_345.5 },
    },
  },
  slots: [],
  circuit: 'closed',
  answeredAt: 1_795_305_358_500,
  lastMinute: { decisions: 140, fallbacks: 3 },
  fallbacks: 3,
  dropped: { log: 0, 'analytics:COUNTS': 2 },
})
