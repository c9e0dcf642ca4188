/** Finds fields of a policy whose size does not fit its limit or its window, so that they have no effect. */
import { spanText } from '../core/base/duration.ts'
import { HELD_MS } from '../core/base/held.ts'
import { type ConfigRule, largestLimit, type PolicyRule, writtenOf } from './facts.ts'

export const shortWait: PolicyRule = ({ name, algorithm, wait, windowMs }, at) => {
  if (algorithm !== 'fixed-window' || wait === undefined || wait >= windowMs) return []
  return {
    path: `${at}.wait`,
    message: `"${name}" lets a request wait for ${spanText(wait)}, and its units come back only at the end of the window of ${spanText(windowMs)}: before the last ${spanText(wait)} no request waits.`,
    hint: "Use 'token-bucket', whose units come back one after the other, or a window that is not longer than the wait.",
  }
}

export const waitsOfCalls: ConfigRule = ({ config: { policies } }) =>
  policies.flatMap(({ name, wait = 0 }, index) => {
    if (wait <= HELD_MS) return []
    return {
      path: `policies[${index}].wait`,
      message: `"${name}" lets a request wait ${wait} ms, but forward-auth waits at most ${HELD_MS} ms, and so does a call of the decision API without waitMs.`,
      hint: `Write wait: '${HELD_MS}ms'. If your callers send waitMs, and wait longer themselves, write accept: 'wait-of-calls'.`,
    }
  })

export const largeLease: PolicyRule = (policy, at) => {
  const { name, lease, algorithm, burst } = policy
  const largest = Math.max(largestLimit(policy), algorithm === 'token-bucket' ? burst : 0)
  if (!lease || lease.max <= largest) return []
  return {
    path: `${at}.lease.max`,
    message: `"${name}" leases up to ${lease.max} units to one isolate, and its quota has ${largest}: the others find nothing left.`,
    hint: 'Set lease.max to a small part of the quota, such as a tenth.',
  }
}

/** Finds a ban that ends while the limit itself still refuses. The units of a token bucket come back before the end of its window. */
export const shortBan: PolicyRule = (policy, at, facts) => {
  const { name, penalty, algorithm, windowMs } = policy
  const written = writtenOf(policy, facts).penalty
  // A ban without a unit has a finding of its own.
  if (!penalty || written === 'manual' || typeof written?.ban === 'number') return []
  const isWindow = algorithm !== 'token-bucket' && algorithm !== 'concurrency'
  if (!isWindow || penalty.banMs >= windowMs) return []
  return {
    path: `${at}.penalty.ban`,
    message: `"${name}" bans for ${spanText(penalty.banMs)}, and a client that has used up the quota is refused until the end of the window of ${spanText(windowMs)} anyway.`,
    hint: 'Set ban to a multiple of the window.',
  }
}
