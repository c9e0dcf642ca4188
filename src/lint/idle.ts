/** Finds policies without effect: those that a stricter policy covers, and those whose requests a list takes. */
import type { Config, Policy } from '../core/config/parse.ts'
import { covers } from './covers.ts'
import { disjoint } from './disjoint.ts'
import { boundOf } from './expect/bound.ts'
import { lineAbove } from './expect/units.ts'
import type { PolicyRule } from './facts.ts'
import { sameKey } from './shield.ts'

/** Finds a policy whose requests an entry of `allow` or `deny` takes. `list-takes-all` reports an entry that takes every request. */
export const neverApplies: PolicyRule = ({ name, match }, at, { config }) => {
  const takes = ({ condition }: Config['deny'][number]) =>
    covers(condition, match) && !covers(condition, {})
  const allow = config.allow.find((one) => takes(one) && (one.policies ?? [name]).includes(name))
  const entry = allow ?? config.deny.find(takes)
  if (!entry) return []
  const list = allow ? 'allow' : 'deny'
  const title = entry.name.startsWith(`${list}[`) ? entry.name : `${list} "${entry.name}"`
  return {
    path: `${at}.match`,
    message: `"${name}" never applies: ${title} ${allow ? 'exempts' : 'refuses'} every request that it matches.`,
    hint: `Narrow the entry of ${list}, or delete the policy.`,
  }
}

export const neverRefuses: PolicyRule = (policy, at, { config }) => {
  if (!isPlain(policy)) return []
  const { policies } = config
  // Of two policies that bound each other, the first one counts.
  const isFirst = (one: Policy) =>
    policies.indexOf(one) < policies.indexOf(policy) ||
    !isPlain(one) ||
    !bounds(policy, one, config)
  const other = policies.find(
    (one) => one !== policy && bounds(one, policy, config) && isFirst(one),
  )
  if (!other) return []
  return {
    path: at,
    message: `"${policy.name}" never refuses a request: "${other.name}" counts the same requests, and always refuses first.`,
    hint: `Lower the limit of "${policy.name}", or delete it.`,
  }
}

/** True for an enforced policy whose every refusal comes from its quota. */
const isPlain = (policy: Policy) =>
  policy.mode === 'enforce' &&
  policy.algorithm !== 'concurrency' &&
  policy.algorithm !== 'distinct' &&
  typeof policy.onMissingKey !== 'object' &&
  policy.reserve.length === 0 &&
  !(policy.claim || policy.overrides || policy.lease || policy.penalty) &&
  !(policy.cost.header || policy.cost.usage || policy.cost.body || policy.cost.graphql)

/** Reports whether what `other` admits of the requests of `policy` always fits its quota. */
function bounds(other: Policy, policy: Policy, { allow, ...config }: Config): boolean {
  const { name, onStoreError, localShare, onMissingKey, key, match } = policy
  if (other.lease || other.overrides || other.cost.header) return false
  if (other.onStoreError !== onStoreError || other.localShare !== localShare) return false
  const escapes = allow.some(
    ({ policies, condition }) =>
      policies?.includes(other.name) && !policies.includes(name) && !disjoint(match, condition),
  )
  if (escapes) return false
  // A request without the key that neither of the two counts needs no bound.
  const isSkipped = onMissingKey !== 'share' && sameKey(key, other.key)
  const counting: Policy = isSkipped ? { ...other, onMissingKey: 'share' } : other
  const found = boundOf(counting, { request: match, per: key, inMs: 1 }, { ...config, allow: [] })
  if (found.gap || found.requests === 0) return false // cost-never-fits reports that it admits none
  const price = dearest(policy) / found.cost
  return isSameCount(found, policy, price) || fits(found, policy, found.counters * price)
}

type KnownBound = Extract<ReturnType<typeof boundOf>, { gap?: undefined }>

/** Reports whether both count alike, so that the smaller limit always refuses first. */
const isSameCount = (
  { policy: other, size, counters }: KnownBound,
  policy: Policy,
  price: number,
) =>
  price <= 1 &&
  counters === 1 &&
  other.algorithm === policy.algorithm &&
  other.windowMs === policy.windowMs &&
  JSON.stringify(other.calendar) === JSON.stringify(policy.calendar) &&
  sameKey(other.key, policy.key) &&
  hasSameWindows(other, policy) &&
  size.limit <= smallestOf(policy) &&
  size.burst <= burstOf(policy)

/** A window that opens with a request is the same only if the first request is. */
const hasSameWindows = (other: Policy, policy: Policy) =>
  other.align === policy.align &&
  (policy.algorithm !== 'fixed-window' ||
    policy.align === 'clock' ||
    policy.calendar !== undefined ||
    covers(policy.match, other.match))

/** @param factor the units of `policy` for each unit of the other one */
function fits({ size }: KnownBound, policy: Policy, factor: number): boolean {
  const line = lineAbove(size)
  const [burst, perMs] = [factor * line.burst, factor * line.perMs]
  const limit = smallestOf(policy)
  const inWindow = burst + perMs * (policy.windowMs - 1)
  switch (policy.algorithm) {
    case 'token-bucket':
      return burst <= burstOf(policy) && perMs <= limit / policy.windowMs
    // The window before counts in full at the start of a window, and hardly at its end.
    case 'sliding-window':
      return Math.max(burst, inWindow / policy.windowMs) + inWindow <= limit
    default:
      return inWindow <= limit
  }
}

const dearest = ({ cost }: Policy) =>
  Math.max(cost.otherwise, ...cost.rules.map((rule) => rule.cost))

const smallestOf = ({ limit, plan }: Policy) =>
  Math.min(limit, ...Object.values(plan?.limits ?? {}))

const burstOf = (policy: Policy) => (policy.burstIsLimit ? smallestOf(policy) : policy.burst)
