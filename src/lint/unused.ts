/** Settings that change nothing. */
import type { Policy } from '../config/parse.ts'
import type { Condition } from '../config/schema/condition.ts'
import { MIN_QUOTA } from '../store/leases/lease.ts'
import { apart, coveredBy, covers, isImpossible } from './conditions.ts'
import {
  alwaysMet,
  type ConfigRule,
  type Facts,
  type Found,
  keyIsThere,
  keyText,
  type Listed,
  type ListRule,
  listed,
  type PolicyRule,
  partsOf,
  titleOf,
  writtenOf,
} from './facts.ts'
import { isDeadPattern } from './paths.ts'
import { costRuleAt, rulesTakeAll } from './quota.ts'
import { takesAll } from './reach.ts'

export const unused = (path: string, message: string, hint = 'Delete it.'): Found => ({
  code: 'unused-setting',
  path,
  message,
  hint,
})

/** What of a condition takes or gives nothing. */
const idle = (condition: Condition, at: string, who: string, { config }: Facts): Found[] => [
  ...(condition.path ?? []).flatMap((pattern, index) =>
    isDeadPattern(pattern)
      ? [
          unused(
            `${at}.path[${index}]`,
            `No path is ever seen as ${pattern}, which ${who} names.`,
            'Write the path without "." and ".." and parameters.',
          ),
        ]
      : [],
  ),
  ...(condition.not ?? []).flatMap((taken, index) =>
    apart({ ...condition, not: undefined }, taken, config)
      ? [
          unused(
            `${at}.not[${index}]`,
            `The not[${index}] of ${who} takes nothing away: it has no request in common with the rest.`,
          ),
        ]
      : [],
  ),
]

export const unusedInPolicy: PolicyRule = (policy, at, facts) => {
  const { name, match, onStoreError } = policy
  const written = writtenOf(policy, facts)
  const found: Found[] = idle(match, `${at}.match`, `"${name}"`, facts)
  if (written.localShare !== undefined && onStoreError !== 'local') {
    const message = `"${name}" has a localShare, and its onStoreError is '${onStoreError}', not 'local'.`
    found.push(unused(`${at}.localShare`, message, "Delete it, or set onStoreError to 'local'."))
  }
  if (written.onMissingKey !== undefined && keyIsThere(policy)) {
    const message = `"${name}" counts by ${keyText(policy)}, which no request lacks.`
    found.push(unused(`${at}.onMissingKey`, message))
  }
  const largest = largestQuota(policy)
  if (policy.lease && largest < MIN_QUOTA) {
    const message = `"${name}" has a quota of ${largest} at most, and nothing of one below ${MIN_QUOTA} is ever leased.`
    found.push(unused(`${at}.lease`, message))
  }
  return [...found, ...overruled(policy, at, facts), ...unusedCosts(policy, at, facts)]
}

/** In units, whatever the plan. */
function largestQuota({ algorithm, limit, burst, plan }: Policy): number {
  const bucket = algorithm === 'token-bucket' || algorithm === 'gcra'
  const plans = plan && (!bucket || plan.burstIsLimit) ? Object.values(plan.limits) : []
  return Math.max(bucket ? burst : limit, ...plans)
}

/** What another policy of the same requests always has the last word on. */
function overruled(policy: Policy, at: string, facts: Facts): Found[] {
  const { name, match, mode, onStoreError, deadlineMs } = policy
  if (mode === 'shadow') return [] // which is to be enforced some day
  const written = writtenOf(policy, facts)
  const besides = alwaysMet(match, policy, facts)
  const stronger = { allow: ['local', 'deny'], local: ['deny'], deny: [] as string[] }[onStoreError]
  const winner = besides.find((other) => stronger.includes(other.onStoreError))
  const shorter = besides.find((other) => other.deadlineMs < deadlineMs)
  return [
    ...(written.onStoreError !== undefined && winner
      ? [
          unused(
            `${at}.onStoreError`,
            `"${name}" says '${onStoreError}', and "${winner.name}", which meets all of its requests too, '${winner.onStoreError}', which wins.`,
            'Delete it, or change the other.',
          ),
        ]
      : []),
    ...(written.deadline !== undefined && shorter
      ? [
          unused(
            `${at}.deadline`,
            `"${name}" never waits so long: "${shorter.name}", which meets all of its requests too, has a deadline of ${shorter.deadlineMs} ms, and the shortest counts.`,
            'Delete it, or lengthen the other.',
          ),
        ]
      : []),
  ]
}

function unusedCosts(policy: Policy, at: string, facts: Facts): Found[] {
  const { name, match, cost } = policy
  const { config } = facts
  const conditions = cost.rules.map(({ condition }) => condition)
  const { cost: written } = writtenOf(policy, facts)
  const otherwise =
    typeof written === 'object' && !Array.isArray(written) && written.otherwise !== undefined
  return [
    ...conditions.flatMap((condition, index) => {
      const before = conditions.slice(0, index)
      const never =
        apart(condition, match, config) ||
        isImpossible(condition, config) ||
        coveredBy(condition, before, config) ||
        coveredBy(match, before, config)
      const message = `No request of "${name}" has its price by this rule: those before it, or the match, leave it none.`
      return never ? [unused(costRuleAt(policy, at, facts, index), message)] : []
    }),
    ...(otherwise && rulesTakeAll(policy, facts)
      ? [
          unused(
            `${at}.cost.otherwise`,
            `Every request of "${name}" has its price by a rule, none by otherwise.`,
          ),
        ]
      : []),
  ]
}

export const unusedInList: ListRule = (entry, facts) => {
  const { at, condition, policies } = entry
  const nothing = noEffect(entry, facts)
  if (nothing) return [unused(at, `${titleOf(entry)} has no effect: ${nothing}.`)]
  return [
    ...idle(condition, at, titleOf(entry), facts),
    ...(policies ?? []).flatMap((name, index) => {
      const policy = facts.config.policies.find((one) => one.name === name)!
      return apart(condition, policy.match, facts.config)
        ? [
            unused(
              `${at}.policies[${index}]`,
              `${titleOf(entry)} names "${name}", which meets none of its requests.`,
            ),
          ]
        : []
    }),
  ]
}

function noEffect(entry: Listed, facts: Facts): string | undefined {
  const { config } = facts
  if (isImpossible(entry.condition, config)) return 'no request is so'
  const others = listed(facts).filter((other) => other.at !== entry.at && !takesAll(other, facts))
  const denied = others.filter(({ list }) => list === 'deny')
  if (entry.list === 'allow') {
    const by = denied.find(({ condition }) => covers(condition, entry.condition, config))
    if (by) return `${titleOf(by)} refuses all that it names, and deny wins`
  }
  const same = listed(facts).filter(({ list }) => list === entry.list)
  const place = same.findIndex(({ at }) => at === entry.at)
  const by = same.find(
    (other, index) =>
      others.some(({ at }) => at === other.at) &&
      doesAllOf(other, entry, config) &&
      (index < place || !doesAllOf(entry, other, config)),
  )
  return by && `${titleOf(by)} takes all that it names`
}

const doesAllOf = (wide: Listed, narrow: Listed, config: Facts['config']) =>
  covers(wide.condition, narrow.condition, config) &&
  (!wide.policies || (narrow.policies?.every((name) => wide.policies!.includes(name)) ?? false))

export const unusedCredentials: ConfigRule = ({ config, written }) => {
  const sources = config.policies
    .flatMap((policy) => [
      ...partsOf(policy, '').map(([part]) => part),
      ...(policy.plan ? [policy.plan.key] : []),
    ])
    .map((part) => part.source)
  return [
    ...(written.jwt !== undefined && !sources.includes('jwt')
      ? [
          unused(
            'jwt',
            'Tokens are to be verified, and no policy counts by a claim of theirs, or has plans by one.',
          ),
        ]
      : []),
    ...(written.apiKeys !== undefined && !sources.includes('api-key')
      ? [
          unused(
            'apiKeys',
            'API keys are configured, and no policy counts by api-key, or has plans by it.',
          ),
        ]
      : []),
  ]
}
