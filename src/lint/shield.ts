/** A first layer that refuses what all policies would let pass. */
import type { Policy } from '../config/parse.ts'
import type { Shield } from '../config/schema/shield.ts'
import { type ConfigRule, type Facts, type Found, identity, isAlwaysMet } from './facts.ts'
import { unreachable } from './reach.ts'
import { unused } from './unused.ts'

export const tightShield: ConfigRule = (facts) => {
  const { shield, policies } = facts.config
  if (!shield) return []
  const asked = policies.filter(
    (policy) => policy.mode === 'enforce' && unreachable(policy, '', facts).length === 0,
  )
  if (asked.length === 0) {
    return [unused('shield', 'The shield is never asked: no policy is enforced.')]
  }
  const bounds = asked.map((policy) => boundsOf(policy, shield, facts))
  const unbounded = asked.filter((_, index) => bounds[index]!.length === 0)
  const names = (some: Policy[]) => some.map(({ name }) => `"${name}"`).join(', ')
  const found = (path: string, message: string, hint: string): Found => ({
    code: 'tight-shield',
    path,
    message,
    hint,
  })
  if (unbounded.length > 0) {
    return [
      found(
        'shield.key',
        `The shield counts the requests of ${names(unbounded)} by its own key, and no policy bounds what it lets pass by that: the shield may be the one to refuse.`,
        'Add a policy by the key of the shield that meets these requests, or accept it where no client sends so many.',
      ),
    ]
  }
  const bounding = cover(bounds, shield)
  const most = bounding.reduce((sum, policy) => sum + mostAdmitted(policy, shield), 0)
  return most > shield.limit
    ? [
        found(
          'shield.limit',
          `The shield refuses after ${shield.limit} requests in ${shield.periodMs / 1000} s, of which ${names(bounding)} may admit ${most}.`,
          `Raise its limit to ${most} at least, here and in wrangler.toml.`,
        ),
      ]
    : []
}

/** The policies that hold whatever a policy lets pass to a number by the key of the shield. */
const boundsOf = (policy: Policy, shield: Shield, facts: Facts): Policy[] =>
  facts.config.policies.filter(
    (other) =>
      identity(other.key) === identity(shield.key) &&
      other.algorithm !== 'concurrency' &&
      other.countOnly === undefined &&
      other.cost.response === undefined &&
      (other === policy || leastCost(other) > 0) &&
      // Requests that lack its key are not the shield's.
      isAlwaysMet({ ...other, onMissingKey: 'share' }, policy.match, policy, facts),
  )

/** Some of them, one for each of the lists at least: what these admit is all that is admitted. */
function cover(lists: Policy[][], shield: Shield): Policy[] {
  if (lists.length === 0) return []
  const count = (policy: Policy) => lists.filter((list) => list.includes(policy)).length
  const [best] = lists
    .flat()
    .sort((a, b) => count(b) - count(a) || mostAdmitted(a, shield) - mostAdmitted(b, shield))
  return [
    best!,
    ...cover(
      lists.filter((list) => !list.includes(best!)),
      shield,
    ),
  ]
}

const costs = ({ cost }: Policy): number[] => [
  ...cost.rules.map(({ cost }) => cost),
  cost.otherwise,
  ...(cost.header ? [0, 1] : []),
]
const leastCost = (policy: Policy) => Math.min(...costs(policy))

/** The most requests that a policy admits in any period of the shield; those without a price are not the shield's. */
function mostAdmitted(policy: Policy, { periodMs }: Shield): number {
  const { algorithm, windowMs, burst, plan } = policy
  const limit = Math.max(policy.limit, ...Object.values(plan?.limits ?? {}))
  const windows = Math.ceil(periodMs / windowMs)
  const bucket = () =>
    (plan?.burstIsLimit ? limit : burst) + Math.floor((limit * periodMs) / windowMs)
  const units = {
    'sliding-log': () => windows * limit,
    'fixed-window': () => (windows + 1) * limit,
    'sliding-window': () => (windows + 1) * limit,
    'token-bucket': bucket,
    gcra: bucket,
    concurrency: () => Number.POSITIVE_INFINITY,
  }[algorithm]()
  const paid = costs(policy).filter((cost) => cost > 0)
  return paid.length > 0 ? Math.floor(units / Math.min(...paid)) : 0
}
