/** Sizes that cannot work, or cost more than they are worth. */
import type { Duration } from '../base/duration.ts'
import type { PolicyOptions } from '../config/options.ts'
import type { Policy } from '../config/parse.ts'
import { coveredBy, covers } from './conditions.ts'
import {
  type ConfigRule,
  type Facts,
  type Found,
  identity,
  keyText,
  type PolicyRule,
  spanText,
  writtenOf,
} from './facts.ts'

/** Where a rule of a cost was written: `cost[1]`, or `cost.rules[1]`. */
export const costRuleAt = (policy: Policy, at: string, facts: Facts, index: number) =>
  `${at}.cost${Array.isArray(writtenOf(policy, facts).cost) ? '' : '.rules'}[${index}]`

/** Whether every request that a policy meets has its price by a rule, and none is left to `otherwise`. */
export const rulesTakeAll = ({ cost, match }: Policy, { config }: Facts) =>
  coveredBy(
    match,
    cost.rules.map(({ condition }) => condition),
    config,
  )

/** A request that is refused however long it waits. */
export const costNeverFits: PolicyRule = (policy, at, facts) => {
  const { name, algorithm, limit, burst, cost } = policy
  const written = writtenOf(policy, facts)
  const field = algorithm === 'token-bucket' || algorithm === 'gcra' ? 'burst' : 'limit'
  // Of the plans that have a size of their own the smallest: its clients can never pay.
  const sizes =
    policy.plan && (field === 'limit' || policy.plan.burstIsLimit)
      ? Object.values(policy.plan.limits)
      : []
  const capacity = Math.min(field === 'burst' ? burst : limit, ...sizes)
  const smallest = sizes.includes(capacity) ? 'smallest ' : ''
  const unless = field === 'burst' && written.burst === undefined ? ', unless it says more' : ''
  const found = (units: number, path: string): Found => ({
    code: 'cost-never-fits',
    path,
    message: `"${name}" never admits a request that costs ${units}: its ${smallest}${field} is ${capacity}${unless}.`,
    hint: `Raise ${field} to ${units} at least, or lower the cost.`,
  })
  const otherwiseAt = typeof written.cost === 'object' ? `${at}.cost.otherwise` : `${at}.cost`
  return [
    ...cost.rules.flatMap((rule, index) =>
      rule.cost > capacity
        ? [found(rule.cost, `${costRuleAt(policy, at, facts, index)}.cost`)]
        : [],
    ),
    ...(cost.otherwise > capacity && !rulesTakeAll(policy, facts)
      ? [found(cost.otherwise, otherwiseAt)]
      : []),
  ]
}

const LARGE_LOG = 1_000

export const largeLog: PolicyRule = ({ name, algorithm, plan, ...policy }, at) => {
  const limit = Math.max(policy.limit, ...Object.values(plan?.limits ?? {}))
  return algorithm === 'sliding-log' && limit > LARGE_LOG
    ? [
        {
          code: 'large-log',
          path: limit === policy.limit ? `${at}.limit` : `${at}.limits`,
          message: `"${name}" remembers each of up to ${limit} units for every client.`,
          hint: "Take 'sliding-window', which keeps two numbers, or a limit of at most 1000.",
        },
      ]
    : []
}

const MANY_POLICIES = 32

/** Found once for each kind of subject, at the first policy that is too many. */
export const manyPolicies: PolicyRule = (policy, at, { config }) => {
  const alike = config.policies.filter(({ key }) => identity(key) === identity(policy.key))
  return alike.indexOf(policy) === MANY_POLICIES
    ? [
        {
          code: 'many-policies',
          path: at,
          message: `"${policy.name}" is one too many: ${alike.length} policies count by ${keyText(policy)}, and every write carries the counters of all that a client met.`,
          hint: `Keep at most ${MANY_POLICIES} by one key: merge some, or split the configuration over several Workers.`,
        },
      ]
    : []
}

/** One Redis key, and one lock, that every request goes through. */
export const globalKey: PolicyRule = (policy, at, { config }) =>
  policy.key.every(({ source }) => source === 'global' || source === 'method') &&
  covers(policy.match, {}, config)
    ? [
        {
          code: 'global-key',
          path: `${at}.key`,
          message: `"${policy.name}" counts every request there is by ${keyText(policy)}: all wait for one Redis key, and one client may use up everybody's quota.`,
          hint: 'Count by ip, or narrow the match to what has to be protected as a whole.',
        },
      ]
    : []

/** A policy that no request uses up. Bans by operators alone need no price. */
export const neverCharges: PolicyRule = (policy, at, facts) => {
  const { name, cost } = policy
  const free =
    cost.header === undefined &&
    cost.response === undefined &&
    cost.rules.every((rule) => rule.cost === 0) &&
    (cost.otherwise === 0 || rulesTakeAll(policy, facts))
  return free && writtenOf(policy, facts).penalty !== 'manual'
    ? [
        {
          code: 'never-charges',
          path: `${at}.cost`,
          message: `"${name}" never charges a request, so it never refuses one.`,
          hint: 'Raise a cost to 1 at least, or delete the policy.',
        },
      ]
    : []
}

/** A configuration that neither counts nor refuses. */
export const noPolicies: ConfigRule = ({ config }) =>
  config.policies.length + config.deny.length > 0 || config.live
    ? []
    : [
        {
          code: 'no-policies',
          path: 'policies',
          message: 'The configuration limits nothing: it has no policy, and denies nothing.',
          hint: "Add a policy, such as { name: 'per-ip', limit: 100, window: '1m' }.",
        },
      ]

const SECOND = 1_000
const THIRTY_DAYS = 2_592_000 // as seconds; as milliseconds it is a whole number of seconds

/** Whether a bare number of milliseconds is a usual number of seconds, such as 60, 900, 3600 or 86400. */
const isSeconds = (written: unknown) =>
  typeof written === 'number' &&
  written % 60 === 0 &&
  (written % SECOND !== 0 || written === THIRTY_DAYS)

/** Durations that are another unit than was meant. */
export const policyDurations: PolicyRule = (policy, at, facts) => {
  const { window, deadline, penalty, lease } = writtenOf(policy, facts)
  const others = {
    'penalty.within': [Object(penalty).within, 'counts refusals within'],
    'penalty.ban': [Object(penalty).ban, 'bans for'],
    'penalty.max': [Object(penalty).max, 'bans for at most'],
    'lease.ttl': [lease?.ttl, 'leases for'],
  }
  return [
    ...(policy.windowMs < SECOND || isSeconds(window)
      ? unlikely(`${at}.window`, `"${policy.name}" has a window of ${exactText(window)}`)
      : []),
    ...Object.entries(others).flatMap(([field, [written, does]]) =>
      isSeconds(written)
        ? unlikely(`${at}.${field}`, `"${policy.name}" ${does} ${exactText(written)}`)
        : [],
    ),
    ...unlikelyDeadline(`${at}.deadline`, `"${policy.name}"`, deadline, policy.deadlineMs),
  ]
}

/** `3600 ms, which is 3.6 s`. */
const exactText = (written: PolicyOptions['window']) =>
  `${spanText(written)}${typeof written === 'number' && written >= SECOND ? `, which is ${written / SECOND} s` : ''}`

export const configDurations: ConfigRule = ({ config, written }) => {
  const { originTimeout, live } = written
  return [
    ...(isSeconds(live?.every)
      ? unlikely('live.every', `The document is read every ${exactText(live!.every!)}`)
      : []),
    ...unlikelyDeadline('deadline', 'The configuration', written.deadline, config.deadlineMs),
    ...(originTimeout !== undefined &&
    (config.originTimeoutMs < SECOND / 10 || isSeconds(originTimeout))
      ? unlikely('originTimeout', `The origin has ${exactText(originTimeout)} to answer`)
      : []),
  ]
}

/** No database answers over HTTPS in less than 10 ms, and no client waits 10 s for a decision. */
const unlikelyDeadline = (path: string, who: string, written: Duration | undefined, ms: number) =>
  written !== undefined && (ms < 10 || ms > 10 * SECOND)
    ? unlikely(path, `${who} has a deadline of ${spanText(written)}`)
    : []

const unlikely = (path: string, message: string): Found[] => [
  {
    code: 'unlikely-duration',
    path,
    message: `${message}.`,
    hint: "Write the unit, as in '10s': a bare number is milliseconds.",
  },
]
