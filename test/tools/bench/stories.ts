import type { PolicyOptions } from '../../../src/core/config/options.ts'

/** One row of an example: a request, and a remark about the result. */
export interface Line {
  /** The time of day, such as `12:00:45` or `12:00:00.5`. */
  at: string
  /** Number of consecutive requests. The row shows the result of the last one. Defaults to 1. */
  times?: number
  /** Cost of each request. Defaults to 1. */
  cost?: number
  /** Changes the policy from this row on. */
  change?: Partial<PolicyOptions>
  remark: string
}

export interface Story {
  policy: PolicyOptions
  lines: Line[]
}

export const stories: Record<string, Story> = {
  'fixed window': {
    policy: {
      name: 'login',
      algorithm: 'fixed-window',
      limit: 10,
      window: '1m',
      align: 'clock',
    },
    lines: [
      { at: '12:00:50', times: 10, remark: 'the whole quota, late in its minute' },
      { at: '12:00:59', remark: 'nothing is left until 12:01:00' },
      { at: '12:01:00', times: 10, remark: 'a new minute, a new quota: 20 in ten seconds' },
      { at: '12:01:01', remark: 'no quota is left for 59 s' },
    ],
  },
  'sliding window': {
    policy: { name: 'per-ip', algorithm: 'sliding-window', limit: 10, window: '1m' },
    lines: [
      { at: '12:00:50', times: 10, remark: 'the whole quota, late in its minute' },
      { at: '12:01:00', remark: 'a new minute, but the last one still counts in full' },
      {
        at: '12:01:06',
        remark: 'a tenth of the minute is over: a tenth of the ten no longer counts',
      },
      { at: '12:01:30', times: 4, remark: 'half is over: 10 × ½ + 1 leaves room for 4' },
      { at: '12:01:30', remark: 'the next one fits when 10 × left + 6 is ≤ 10' },
      { at: '12:01:36', remark: 'exactly then' },
    ],
  },
  'sliding log': {
    policy: { name: 'sms', algorithm: 'sliding-log', limit: 3, window: '1m' },
    lines: [
      { at: '12:00:10', remark: 'one' },
      { at: '12:00:40', remark: 'two' },
      { at: '12:00:50', remark: 'three: the log is full' },
      { at: '12:01:05', remark: 'the first leaves the log at 12:01:10' },
      { at: '12:01:10', remark: 'exactly then; the next place is free at 12:01:40' },
    ],
  },
  'token bucket': {
    policy: { name: 'api', algorithm: 'token-bucket', limit: 60, window: '1m', burst: 10 },
    lines: [
      { at: '12:00:00', times: 10, remark: 'the bucket starts full: all ten at once' },
      { at: '12:00:00', remark: 'a token a second comes back' },
      { at: '12:00:01', remark: 'exactly then' },
      { at: '12:00:05', cost: 5, remark: 'a request of five finds four' },
      { at: '12:00:06', cost: 5, remark: 'and a second later five' },
      { at: '12:00:30', cost: 11, remark: 'more than the bucket holds: never' },
    ],
  },
  'a changed limit': {
    policy: { name: 'per-user', algorithm: 'fixed-window', limit: 10, window: '1m' },
    lines: [
      { at: '12:00:00', times: 8, remark: '8 of 10' },
      { at: '12:00:10', change: { limit: 5 }, remark: 'deployed with 5: 8 are more than that' },
      { at: '12:00:20', change: { limit: 20 }, remark: 'deployed with 20: 8 of 20 were taken' },
      { at: '12:00:30', change: { window: '2m' }, remark: 'another window: a state of its own' },
    ],
  },
}
