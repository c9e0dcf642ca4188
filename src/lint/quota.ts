/** Finds quotas that do not work, and quotas that are expensive. */
import type { Policy } from '../core/config/parse.ts'
import { labelOf } from '../core/program/key.ts'
import { covers } from './covers.ts'
import {
  type ConfigRule,
  largestLimit,
  type PolicyRule,
  smallestCapacity,
  writtenOf,
} from './facts.ts'

/** Reports whether one rule matches every request of a policy, so that `otherwise` has no effect. */
const ruleMatchesAll = ({ cost, match }: Policy) =>
  cost.rules.some(({ condition }) => covers(condition, match))

export const costNeverFits: PolicyRule = (policy, at, facts) => {
  const { name, cost } = policy
  const written = writtenOf(policy, facts)
  const { field, capacity, isOfPlan } = smallestCapacity(policy)
  const smallest = isOfPlan ? 'smallest ' : ''
  const isDefault = field === 'burst' && written.burst === undefined ? ' by default' : ''
  const rulesAt = Array.isArray(written.cost) ? 'cost' : 'cost.rules'
  const isMax = (written.cost as Partial<Policy['cost']> | undefined)?.otherwise === undefined
  const otherwiseAt =
    typeof written.cost !== 'object' ? 'cost' : isMax ? 'cost.max' : 'cost.otherwise'
  const prices: [units: number, field: string][] = [
    ...cost.rules.map((rule, index): [number, string] => [rule.cost, `${rulesAt}[${index}].cost`]),
    [ruleMatchesAll(policy) ? 0 : cost.otherwise, otherwiseAt],
  ]
  return prices
    .filter(([units]) => units > capacity)
    .map(([units, place]) => ({
      path: `${at}.${place}`,
      message: `"${name}" never admits a request that costs ${units}: its ${smallest}${field} is ${capacity}${isDefault}.`,
      hint: `Raise ${field} to at least ${units}, or lower the cost.`,
    }))
}

const LARGE_LOG = 1_000

export const largeLog: PolicyRule = (policy, at) => {
  const { name, algorithm, claim } = policy
  const limit = largestLimit(policy)
  if (algorithm !== 'sliding-log' || limit <= LARGE_LOG) return []
  const field = claim ? 'limit.max' : limit === policy.limit ? 'limit' : 'limits'
  return {
    path: `${at}.${field}`,
    message: `"${name}" stores an entry for each of up to ${limit} units of every client.`,
    hint: "Use 'sliding-window', which stores two numbers, or a limit of at most 1000.",
  }
}

export const globalKey: PolicyRule = ({ name, key, match }, at) => {
  const isGlobal = key.every(({ source }) => source === 'global' || source === 'method')
  if (!isGlobal || !covers(match, {})) return []
  return {
    path: `${at}.key`,
    message: `"${name}" counts every request by ${key.map(labelOf).join(' + ')}: every request uses one Redis key, and one client can use up the quota of all clients.`,
    hint: 'Count by ip, or narrow the match to the requests that need one common limit.',
  }
}

/** Finds a policy whose costs are all 0. A policy for manual bans needs no cost. */
export const neverCharges: PolicyRule = (policy, at, facts) => {
  const { name, cost } = policy
  const { header, response, usage, body, graphql } = cost
  const charges =
    [header, response, usage, body, graphql].some((one) => one !== undefined) ||
    cost.rules.some((rule) => rule.cost > 0) ||
    (cost.otherwise > 0 && !ruleMatchesAll(policy))
  if (charges || writtenOf(policy, facts).penalty === 'manual') return []
  return {
    path: `${at}.cost`,
    message: `"${name}" never charges a request, so it never refuses one.`,
    hint: 'Raise a cost to at least 1, or delete the policy.',
  }
}

export const noPolicies: ConfigRule = ({ config, written }) => {
  if (config.policies.length + config.deny.length > 0 || config.live) return []
  const [missing, example] =
    'limits' in written
      ? ['limit', "limit, such as invites: { limit: 20, window: '1d' }"]
      : [
          'policy and no entry in deny',
          "policy, such as { name: 'per-ip', limit: 100, window: '1m' }",
        ]
  return {
    path: 'policies',
    message: `The configuration has no ${missing}, so it limits nothing.`,
    hint: `Add a ${example}.`,
  }
}
