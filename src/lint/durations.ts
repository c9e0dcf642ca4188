/** Durations in another unit than intended: a bare number is milliseconds. */
import { parseDuration } from '../base/duration.ts'
import type { PolicyOptions } from '../config/options.ts'
import { type ConfigRule, type Found, type PolicyRule, writtenOf } from './facts.ts'

type Written = PolicyOptions['window'] | undefined
type Row = [
  path: string,
  says: string,
  written: Written,
  isUnlikely?: (written: Written) => boolean,
]

export const policyDurations: PolicyRule = (policy, at, facts) => {
  const { window, deadline, penalty, lease } = writtenOf(policy, facts)
  const { within, ban, max } = Object(penalty)
  const title = `"${policy.name}"`
  return unlikely([
    [`${at}.window`, `${title} has a window of`, window, isShort(1_000)],
    [`${at}.penalty.within`, `${title} counts refusals within`, within],
    [`${at}.penalty.ban`, `${title} bans for`, ban],
    [`${at}.penalty.max`, `${title} bans for at most`, max],
    [`${at}.lease.ttl`, `${title} leases for`, lease?.ttl],
    [`${at}.deadline`, `${title} has a deadline of`, deadline, isNoDeadline],
  ])
}

export const configDurations: ConfigRule = ({ written: { deadline, originTimeout, live } }) =>
  unlikely([
    ['live.every', 'The document is read every', live?.every],
    ['deadline', 'The configuration has a deadline of', deadline, isNoDeadline],
    ['originTimeout', 'The origin has a timeout of', originTimeout, isShort(100)],
  ])

const unlikely = (rows: Row[]): Found[] =>
  rows
    .filter(([, , written, isUnlikely = isSeconds]) => written !== undefined && isUnlikely(written))
    .map(([path, says, written]) => ({
      code: 'unlikely-duration',
      path,
      message: `${says} ${textOf(written)}.`,
      hint: "Write the unit, as in '10s': a bare number is milliseconds.",
    }))

const THIRTY_DAYS_S = 2_592_000 // as milliseconds it is a whole number of seconds

/** Whether a bare number of milliseconds is a usual number of seconds, such as 60, 900, 3600 or 86400. */
const isSeconds = (written: Written) =>
  typeof written === 'number' &&
  written % 60 === 0 &&
  (written % 1_000 !== 0 || written === THIRTY_DAYS_S)

const isShort = (leastMs: number) => (written: Written) =>
  isSeconds(written) || (parseDuration(written) ?? leastMs) < leastMs // a calendar unit has no number

/** No database answers over HTTPS in less than 10 ms, and no client waits 10 s for a decision. */
function isNoDeadline(written: Written) {
  const ms = parseDuration(written) ?? 10
  return ms < 10 || ms > 10_000
}

/** A duration as it was written: `a day`, `5m`, `60 ms`, or `3600 ms, which is 3.6 s`. */
function textOf(written: Written): string {
  if (written === 'day' || written === 'week' || written === 'month') return `a ${written}`
  if (typeof written !== 'number') return written!
  return `${written} ms${written >= 1_000 ? `, which is ${written / 1_000} s` : ''}`
}
