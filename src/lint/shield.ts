/** A shield that refuses requests which every policy would admit. */
import type { Config, Policy } from '../config/parse.ts'
import type { KeyPart } from '../config/schema/key.ts'
import type { Shield } from '../config/schema/shield.ts'
import { accompanies } from './covers.ts'
import type { Found } from './facts.ts'

export function tightShield(shield: Shield, config: Config): Found[] {
  const enforced = config.policies.filter(({ mode }) => mode === 'enforce')
  const bounds = enforced.map((policy) =>
    config.policies.filter(
      (other) => isBound(other, policy, shield) && accompanies(other, policy, config),
    ),
  )
  const unbounded = enforced.filter((_, index) => bounds[index]!.length === 0)
  const names = (some: Policy[]) => some.map(({ name }) => `"${name}"`).join(', ')
  if (unbounded.length > 0) {
    return [
      {
        code: 'tight-shield',
        path: 'shield.key',
        message: `The shield counts the requests of ${names(unbounded)} by its own key, and no policy limits them by that key: the shield may refuse requests that the policies admit.`,
        hint: 'Add a policy by the key of the shield that meets these requests, or accept it where no client sends so many.',
      },
    ]
  }
  const bounding = cover(bounds, shield)
  const most = bounding.reduce((sum, policy) => sum + mostAdmitted(policy, shield), 0)
  if (most <= shield.limit) return []
  return [
    {
      code: 'tight-shield',
      path: 'shield.limit',
      message: `The shield refuses after ${shield.limit} requests in ${shield.periodMs / 1000} s, of which ${names(bounding)} may admit ${most}.`,
      hint: `Raise its limit to ${most} at least, here and in wrangler.toml.`,
    },
  ]
}

/** Whether a policy limits the requests that another admits, by the key of the shield. The shield does not count requests without its key. */
const isBound = (bound: Policy, policy: Policy, { key }: Shield) =>
  sameKey(bound.key, key) &&
  bound.algorithm !== 'concurrency' &&
  bound.countOnly === undefined &&
  bound.cost.response === undefined &&
  (bound === policy || Math.min(...costs(bound)) > 0)

const sameKey = (one: KeyPart[], other: KeyPart[]) =>
  one.length === other.length && one.every((part, index) => samePart(part, other[index]!))

const samePart = (one: KeyPart, other: KeyPart) =>
  one.source === 'function'
    ? other.source === 'function' && one.read === other.read
    : JSON.stringify(one) === JSON.stringify(other)

/** Few policies, at least one from each list: together they bound everything that is admitted. */
function cover(lists: Policy[][], shield: Shield): Policy[] {
  if (lists.length === 0) return []
  const count = (policy: Policy) => lists.filter((list) => list.includes(policy)).length
  const best = lists
    .flat()
    .sort((a, b) => count(b) - count(a) || mostAdmitted(a, shield) - mostAdmitted(b, shield))[0]!
  const rest = lists.filter((list) => !list.includes(best))
  return [best, ...cover(rest, shield)]
}

const costs = ({ cost }: Policy): number[] => [
  ...cost.rules.map(({ cost }) => cost),
  cost.otherwise,
  ...(cost.header ? [0, 1] : []),
]

/** The most requests that a policy admits in any period of the shield. The shield does not count requests without a cost. */
function mostAdmitted(policy: Policy, { periodMs }: Shield): number {
  const { algorithm, windowMs, burst, plan } = policy
  const limit = Math.max(policy.limit, ...Object.values(plan?.limits ?? {}))
  const windows = Math.ceil(periodMs / windowMs)
  const bucket = (plan?.burstIsLimit ? limit : burst) + Math.floor((limit * periodMs) / windowMs)
  const units = {
    'sliding-log': windows * limit,
    'fixed-window': (windows + 1) * limit,
    'sliding-window': (windows + 1) * limit,
    'token-bucket': bucket,
    concurrency: Number.POSITIVE_INFINITY,
  }[algorithm]
  const paid = costs(policy).filter((cost) => cost > 0)
  return paid.length > 0 ? Math.floor(units / Math.min(...paid)) : 0
}
