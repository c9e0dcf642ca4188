/** Which requests policies and lists ever decide about. */
import type { Policy } from '../config/parse.ts'
import { apart, coveredBy, covers, isImpossible } from './conditions.ts'
import {
  type Facts,
  type Found,
  identity,
  isAlwaysMet,
  type Listed,
  type ListRule,
  listed,
  type PolicyRule,
  sameKey,
  spanText,
  titleOf,
  writtenOf,
} from './facts.ts'
import { isDeadPattern, patternCovers } from './paths.ts'

/** A policy that meets no request; what else there is to say of it does not matter then. */
export function unreachable({ name, match }: Policy, at: string, { config }: Facts): Found[] {
  const found = (path: string, why: string, hint: string): Found[] => [
    { code: 'unreachable-policy', path, message: `"${name}" meets no request: ${why}.`, hint },
  ]
  if (match.path?.every(isDeadPattern)) {
    const why = `no path is ever seen as ${match.path.join(' or ')}`
    return found(`${at}.match.path`, why, 'Write the path without "." and ".." and parameters.')
  }
  if (match.path?.every((path) => patternCovers('/_sluice/*', path, config.caseSensitivePaths))) {
    const why = "paths under /_sluice/ are the Worker's own, which it answers before any policy"
    return found(`${at}.match.path`, why, 'Delete the policy.')
  }
  if (isImpossible(match, config)) {
    const why = 'its not takes away all that its match names'
    return found(`${at}.match.not`, why, 'Narrow the not, or delete the policy.')
  }
  return []
}

/** A policy whose every request a list takes. */
export const listedAway: PolicyRule = ({ name, match }, at, facts) =>
  (['deny', 'allow'] as const).flatMap((list) => {
    const entries = listed(facts).filter(
      (entry) =>
        entry.list === list &&
        !takesAll(entry, facts) && // has been said of the entry
        (entry.policies?.includes(name) ?? true) &&
        !apart(entry.condition, match, facts.config),
    )
    const conditions = entries.map(({ condition }) => condition)
    if (!coveredBy(match, conditions, facts.config)) return []
    const one = entries.find(({ condition }) => covers(condition, match, facts.config))
    const who = (one ? [one] : entries).map(titleOf).join(' and ')
    return [
      list === 'deny'
        ? {
            code: 'refused-by-deny',
            path: `${at}.match`,
            message: `"${name}" counts no request: ${who} ${one ? 'refuses' : 'refuse'} all that it names.`,
            hint: 'Delete the policy, or narrow the entry.',
          }
        : {
            code: 'skipped-by-allow',
            path: `${at}.match`,
            message: `"${name}" limits no request: ${who} ${one ? 'lets' : 'let'} all that it names skip it.`,
            hint: 'Narrow the entry, or name in its policies those that it is about.',
          },
    ]
  })

/** A policy that never is the one to refuse, since another is as narrow or narrower on all of its requests. */
export const redundant: PolicyRule = (policy, at, facts) => {
  const narrower = facts.config.policies.find(
    (other, index) =>
      isRedundant(policy, other, facts) &&
      // Of two that are equal, the later one.
      (index < facts.config.policies.indexOf(policy) || !isRedundant(other, policy, facts)),
  )
  if (!narrower) return []
  const { name, limit } = narrower
  const window = spanText(writtenOf(narrower, facts).window)
  return [
    {
      code: 'redundant-policy',
      path: at,
      message: `"${policy.name}" never is the one to refuse: "${name}" counts all of its requests by the same key, ${limit} in ${window}.`,
      hint: `Delete one of the two, or make "${policy.name}" the narrower one.`,
    },
  ]
}

function isRedundant(policy: Policy, other: Policy, facts: Facts): boolean {
  return (
    policy.algorithm === other.algorithm &&
    policy.align === other.align &&
    // What bans, or has sizes of its own, may refuse for itself.
    !policy.penalty &&
    !policy.plan &&
    !other.plan &&
    identity(policy.calendar) === identity(other.calendar) &&
    identity(policy.countOnly) === identity(other.countOnly) &&
    identity(policy.cost) === identity(other.cost) &&
    sameKey(policy, other) &&
    isAlwaysMet(other, policy.match, policy, facts) &&
    isNarrower(other, policy, isAlwaysMet(policy, other.match, other, facts)) &&
    // What it does while Redis is away, too.
    (policy.mode === 'shadow' ||
      ((policy.onStoreError === 'allow' ||
        other.onStoreError === 'deny' ||
        (policy.onStoreError === other.onStoreError && policy.localShare >= other.localShare)) &&
        policy.deadlineMs >= other.deadlineMs))
  )
}

/**
 * Whether a quota that is charged at least what another is charged is full whenever the other is.
 * @param together whether both are charged exactly the same
 */
function isNarrower(narrow: Policy, wide: Policy, together: boolean): boolean {
  const { algorithm, limit, windowMs, burst, align } = narrow
  if (limit > wide.limit || windowMs < wide.windowMs || burst > wide.burst) return false
  if (algorithm === 'fixed-window' && align === 'first-request') {
    // Windows open when they will: one of the wide lies across two of the narrow, unless they open and end together.
    return 2 * limit <= wide.limit || (together && windowMs === wide.windowMs)
  }
  // Windows on a grid: no edge of the narrow within one of the wide.
  const onGrid = algorithm === 'fixed-window' || algorithm === 'sliding-window'
  return !onGrid || windowMs % wide.windowMs === 0
}

/** An entry that takes every request, or every address. */
export const takingAll: ListRule = (entry, facts) => {
  const all = takesAll(entry, facts)
  if (!all) return []
  const does = entry.list === 'deny' ? 'is refused' : 'skips every limit'
  return [
    {
      code: 'list-takes-all',
      path: entry.at,
      message: `${titleOf(entry)} takes everything: ${all} ${does}.`,
      hint: 'Say which requests the entry is about.',
    },
  ]
}

export function takesAll(
  { condition, policies }: Listed,
  { config }: Pick<Facts, 'config'>,
): string | undefined {
  if (policies) return undefined
  if (covers(condition, {}, config)) return 'every request'
  const whole = condition.ip?.find((text) => text.endsWith('/0'))
  return whole && covers({ ...condition, ip: undefined }, {}, config)
    ? `every request from ${whole}`
    : undefined
}
