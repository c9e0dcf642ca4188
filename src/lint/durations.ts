/** Finds durations that are probably in the wrong unit: a number without a unit is in milliseconds. */
import { parseDuration } from '../core/base/duration.ts'
import type { PolicyOptions } from '../core/config/options.ts'
import { type ConfigRule, type Found, type PolicyRule, writtenOf } from './facts.ts'

type Written = PolicyOptions['window'] | undefined
type Row = [
  path: string,
  subject: string,
  written: Written,
  isUnlikely?: (written: Written) => boolean,
]

export const policyDurations: PolicyRule = (policy, at, facts) => {
  const { window, wait, deadline, penalty, lease } = writtenOf(policy, facts)
  const { within, ban, max } = Object(penalty)
  const title = `"${policy.name}"`
  return unlikely([
    [`${at}.window`, `${title} has a window of`, window, isShort(1_000)],
    [`${at}.wait`, `${title} lets a request wait for`, wait, isSecondsOfWait],
    [`${at}.penalty.within`, `${title} counts refusals within`, within],
    [`${at}.penalty.ban`, `${title} bans for`, ban],
    [`${at}.penalty.max`, `${title} bans for at most`, max],
    [`${at}.lease.ttl`, `${title} leases for`, lease?.ttl],
    [`${at}.deadline`, `${title} has a deadline of`, deadline, isUselessDeadline],
  ])
}

export const configDurations: ConfigRule = ({ written: { deadline, originTimeout, live } }) =>
  unlikely([
    ['live.every', 'The live document is read every', live?.every],
    ['deadline', 'The configuration has a deadline of', deadline, isUselessDeadline],
    ['originTimeout', 'The origin has a timeout of', originTimeout, isShort(100)],
  ])

const unlikely = (rows: Row[]): Found[] =>
  rows
    .filter(([, , written, isUnlikely = isSeconds]) => written !== undefined && isUnlikely(written))
    .map(([path, subject, written]) => ({
      path,
      message: `${subject} ${textOf(written)}.`,
      hint: "Write a unit, as in '10s'. A number without a unit is in milliseconds.",
    }))

const THIRTY_DAYS_S = 2_592_000 // also a whole number of seconds if read as milliseconds

/** Reports whether a number without a unit is a usual number of seconds, such as 60, 900, 3600 or 86400. */
const isSeconds = (written: Written) =>
  typeof written === 'number' &&
  written % 60 === 0 &&
  (written % 1_000 !== 0 || written === THIRTY_DAYS_S)

/** The longest wait is 60 s, so that a small number is one of seconds. */
const isSecondsOfWait = (written: Written) => typeof written === 'number' && written <= 60

const isShort = (leastMs: number) => (written: Written) =>
  isSeconds(written) || (parseDuration(written) ?? leastMs) < leastMs // a calendar window is long enough

/** No database answers over HTTPS in less than 10 ms, and no client waits 10 s for a decision. */
function isUselessDeadline(written: Written) {
  const ms = parseDuration(written) ?? 10
  return ms < 10 || ms > 10_000
}

/** A duration for a message: `a day`, `5m`, `60 ms`, or `3600 ms, which is 3.6 s`. */
function textOf(written: Written): string {
  if (written === 'day' || written === 'week' || written === 'month') return `a ${written}`
  if (typeof written !== 'number') return written!
  return `${written} ms${written >= 1_000 ? `, which is ${written / 1_000} s` : ''}`
}
