/** Finds a shield that may refuse requests that all policies admit. */
import type { Config, Policy } from '../core/config/parse.ts'
import type { KeyPart } from '../core/config/schema/key.ts'
import { accompanies } from './covers.ts'
import { type Found, largestLimit } from './facts.ts'

type CheckedShield = NonNullable<Config['shield']>

export function tightShield(shield: CheckedShield, config: Config): Found | Found[] {
  const enforced = config.policies.filter(({ mode }) => mode === 'enforce')
  const bounds = enforced.map((policy) =>
    config.policies.filter(
      (other) => isBound(other, policy, shield) && accompanies(other, policy, config),
    ),
  )
  const unbounded = enforced.filter((_, index) => bounds[index]!.length === 0)
  const names = (some: Policy[]) => some.map(({ name }) => `"${name}"`).join(', ')
  if (unbounded.length > 0) {
    return {
      path: 'shield.key',
      message: `The shield may refuse requests of ${names(unbounded)} that the policies admit: no policy limits them by the key of the shield.`,
      hint: 'Add a policy for these requests with the key of the shield, or accept the finding if no client sends that many requests.',
    }
  }
  const bounding = cover(bounds, shield)
  const most = bounding.reduce((sum, policy) => sum + mostAdmitted(policy, shield), 0)
  if (most <= shield.limit) return []
  return {
    path: 'shield.limit',
    message: `The shield refuses after ${shield.limit} requests in ${shield.periodMs / 1000} s, and ${names(bounding)} may admit ${most}.`,
    hint: `Raise the limit of the shield to at least ${most}, here and in the wrangler configuration.`,
  }
}

/** Reports whether `bound` limits the requests of `policy` by the key of the shield. The shield does not count requests without its key. */
const isBound = (bound: Policy, policy: Policy, { key }: CheckedShield) =>
  sameKey(bound.key, key) &&
  bound.algorithm !== 'concurrency' &&
  bound.algorithm !== 'distinct' &&
  bound.countOnly === undefined &&
  bound.cost.response === undefined &&
  bound.cost.usage === undefined &&
  (bound === policy || Math.min(...costs(bound)) > 0)

export const sameKey = (one: KeyPart[], other: KeyPart[]) =>
  one.length === other.length && one.every((part, index) => samePart(part, other[index]!))

const samePart = (one: KeyPart, other: KeyPart) =>
  one.source === 'function'
    ? other.source === 'function' && one.read === other.read
    : JSON.stringify(one) === JSON.stringify(other)

/** Selects few policies with at least one from each list, which together bound all admitted requests (greedy set cover). */
function cover(lists: Policy[][], shield: CheckedShield): Policy[] {
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

/** Upper bound of the requests that a policy admits in any period of the shield. The shield does not count requests with a cost of 0. */
function mostAdmitted(policy: Policy, { periodMs }: CheckedShield): number {
  const { algorithm, windowMs, burst, burstIsLimit } = policy
  const limit = largestLimit(policy)
  const windows = Math.ceil(periodMs / windowMs)
  const bucket = (burstIsLimit ? limit : burst) + Math.floor((limit * periodMs) / windowMs)
  const units = {
    'sliding-log': windows * limit,
    distinct: Number.POSITIVE_INFINITY, // any number of requests with one value
    'fixed-window': (windows + 1) * limit,
    'sliding-window': (windows + 1) * limit,
    'token-bucket': bucket,
    concurrency: Number.POSITIVE_INFINITY,
  }[algorithm]
  const paid = costs(policy).filter((cost) => cost > 0)
  return paid.length > 0 ? Math.floor(units / Math.min(...paid)) : 0
}
