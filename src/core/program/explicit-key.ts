import { type ConfigProblem, show } from '../base/errors.ts'
import type { Part } from '../base/part.ts'
import type { Config, Policy } from '../config/parse.ts'
import { matchWith, twice } from '../decide/matched.ts'
import { labelOf } from './key.ts'
import { type Match, type Matched, type Rules, withShare } from './match.ts'
import { ofPlan } from './plan.ts'
import { sourceOf } from './source.ts'

/** One value of a policy's key. A text has at most 1,024 characters. */
export type KeyValue = string | number

/** The values of a policy's key, in the order of its parts. `null` is a missing part. A key of one part may be a single value. */
export type KeyValues = KeyValue | (KeyValue | null)[]

export const policyOf = (
  { config }: { config: Pick<Config, 'policies'> },
  name: string,
): Policy | undefined => config.policies.find((policy) => policy.name === name)

/** The share of a request that is not known: that of the first rule for every request. */
const shareOfAny = ({ reserve }: Policy): number =>
  reserve.find(({ condition }) => Object.values(condition).every((one) => one === undefined))
    ?.share ?? 0

/** Makes the match of a policy by its name and its key. Its conditions, and the lists `allow` and `deny`, do not count. */
export async function matchByKey(rules: Rules, name: string, key: KeyValues, plan?: string) {
  const policy = policyOf(rules, name)
  if (!policy) return { path: 'policy', expected: 'the name of a policy', got: show(name) }
  const found = await explicitKey(policy, key, plan, rules)
  return 'expected' in found ? found : withShare(found, shareOfAny(policy))
}

export async function matchedByKeys(
  rules: Rules,
  limits: readonly (readonly [name: string, key: KeyValues])[],
  plan: string | undefined,
): Promise<Matched | ConfigProblem> {
  const policies: Match[] = []
  for (const [name, key] of limits) {
    const found = await matchByKey(rules, name, key, plan)
    if ('expected' in found) return found
    policies.push(found)
  }
  return twice(policies) ?? { policies }
}

/** Makes the match of one policy from the values of its key, in the order of the key. Normalizes them like those of a request. */
export async function explicitKey(
  policy: Policy,
  key: KeyValues,
  plan: string | undefined,
  { config, sources }: Pick<Rules, 'config' | 'sources'>,
): Promise<Match | ConfigProblem> {
  const values = Array.isArray(key) ? key : [key]
  const labels = policy.key.map(labelOf)
  if (values.length !== labels.length) {
    const expected = `a value for each of ${labels.join(', ')}`
    return { path: 'key', expected, got: `${values.length}` }
  }
  const parts = await Promise.all(
    policy.key.map((part, index) => {
      const value = `${values[index] ?? ''}`
      const { fold = String, given = fold } = sourceOf(sources, part)
      return value === '' ? undefined : given(value, part, config)
    }),
  )
  const wrong = parts.findIndex((part) => part instanceof Error)
  const at = (index: number) => (Array.isArray(key) ? `key[${index}]` : 'key')
  if (wrong >= 0) {
    const expected = `${(parts[wrong] as Error).message} (the key of the policy ${policy.name} is ${labels.join(', ')})`
    return { path: at(wrong), expected, got: show(values[wrong]) }
  }
  const missing = parts.indexOf(undefined)
  if (missing >= 0 && policy.onMissingKey !== 'share') {
    const expected = `a value (the policy has no quota for requests without ${labels[missing]})`
    return { path: at(missing), expected, got: show(values[missing]) }
  }
  const known = parts as (string | undefined)[]
  const partitionKey = labels.map((label, index): Part => [label, known[index]])
  return matchOf(policy, partitionKey, plan)
}

/** Makes the match of a policy with a partition key, or with a subject whose key is not known, in the size of a plan that it must have. */
export function matchOf(policy: Policy, key: Part[] | string, plan?: string) {
  const planned = plan === undefined ? policy : ofPlan(policy, plan)
  if (!planned) {
    const names = Object.keys(policy.plan?.limits ?? {}).join(', ')
    const expected = names
      ? `one of ${names} (leave plan out for the limit of ${policy.limit})`
      : 'nothing (the policy has no plans)'
    return { path: 'plan', expected, got: show(plan) }
  }
  const match = matchWith(planned, typeof key === 'string' ? [] : key)
  if (typeof key === 'string') match.subject = key
  // A key does not tell a value.
  if (policy.distinct) match.distinct = [[labelOf(policy.distinct), undefined]]
  return match
}
