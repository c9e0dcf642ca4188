import * as v from 'valibot'
import { isTimeZone } from '../../base/calendar.ts'
import { tagOf } from '../../base/tag.ts'
import { type OwnedFields, opaque, owners } from '../owners.ts'
import { condition } from './condition.ts'
import { cost } from './cost.ts'
import {
  type Key,
  type KeyPart,
  type KeySource,
  key,
  type MissingKeyOptions,
  type OnMissingKey,
  oneKey,
  onMissingKey,
} from './key.ts'
import { limit } from './limit.ts'
import { countOnly } from './outcomes.ts'
import { type PlanOptions, type PlanSource, plan } from './plan.ts'
import { buckets, checkCalendar, checkParameters, checkQuota } from './policy-checks.ts'
import { type Refusal, type RefusalInput, refusal } from './refusal.ts'
import { reserve } from './reserve.ts'
import {
  accept,
  duration,
  type Input,
  type Named,
  name,
  named,
  type Output,
  object,
  oneOf,
  timeout,
  whole,
} from './shapes.ts'
import { countsBytes, usesBody } from './uses-body.ts'
import { isUnit, LONGEST_MS, window } from './window.ts'

const inWindows = ['fixed-window', 'sliding-window', 'sliding-log'] as const

const policyFields = <Context>() => ({
  /** Unique name of the policy: up to 64 letters, digits, `_`, `.` or `-`, starting with a letter or digit. It appears in the `RateLimit` fields. Required. */
  name,
  /**
   * The algorithm that counts. `'gcra'` is `'token-bucket'` with a `burst` that defaults to 1. Defaults to `'sliding-window'`.
   */
  algorithm: v.optional(oneOf(...inWindows, 'concurrency', ...buckets), 'sliding-window'),
  /**
   * Size of the quota in units. A request costs one unit unless `cost` says otherwise. A whole number, at least 1; at most 10,000 with
   * `'sliding-log'` and `'concurrency'`. At most 2^53 - 1 with `'fixed-window'`; otherwise `limit` × `window` in ms must not exceed
   * 2^53 / 3 (a million in 31 days fits). Or `{ claim, max, otherwise }`: the number in a claim of the verified token (`jwt()`). Required.
   */
  limit,
  /**
   * The time window of the quota: a duration such as `'10s'`, `'1m'`, `'1h'` or `'1d'`, or whole milliseconds. With `'fixed-window'` also
   * a calendar `'day'`, `'week'` (from Monday) or `'month'`. With `'concurrency'` the lifetime of a slot that is not released. Required.
   */
  window,
  /** Time zone of a calendar `window`: an IANA name such as `'Europe/Berlin'`. Defaults to `'UTC'`. */
  timeZone: v.optional(v.custom<string>(isTimeZone, 'a time zone like "Europe/Berlin"')),
  /**
   * Source of a request's plan: a key part such as `'header:x-plan'`, or `{ key, table }` to look up its value in a table of the
   * configuration. Requires `limits`. Defaults to none.
   */
  plan: v.optional(plan as v.GenericSchema<PlanOptions<Context>, PlanSource>),
  /**
   * Counts only these responses of the origin: a status (`401`), a range (`'4xx'`, `'200-299'`), or a list. A request is charged first and
   * refunded if its response does not count. Cannot be combined with `'concurrency'`. Defaults to all responses.
   */
  countOnly: v.optional(countOnly),
  /**
   * Capacity of the bucket in units: a whole number, at least 1. Only for `'token-bucket'` (defaults to `limit`) and `'gcra'`
   * (defaults to 1, which spaces requests evenly).
   */
  burst: v.optional(whole(1)),
  /** Start of a fixed window: `'first-request'`, or `'clock'` for multiples of `window` since the epoch. Not for other windows. Defaults to `'first-request'`. */
  align: v.optional(oneOf('first-request', 'clock')),
  /** Counts by this key part, or by the combination of a list of parts. Defaults to `'ip'`. */
  key: v.optional(key as v.GenericSchema<Key<Context>, KeyPart[]>, 'ip'),
  /**
   * How a request without a part of the key is treated. `'share'` counts all such requests in one quota; `'skip'` does not apply the
   * policy; `'refuse'` answers 403; `{ key: 'ip' }` counts by another key. A credential that is present but cannot be read or verified is
   * treated the same, except that `'skip'` counts it in one shared quota. Defaults to `'share'`.
   */
  onMissingKey: v.optional(
    onMissingKey as v.GenericSchema<MissingKeyOptions<Context>, OnMissingKey>,
    'share',
  ),
  /**
   * Counts the different values of this key part, such as `'body:username'`, instead of requests: at most `limit` of them pass in any
   * `window`, and a request with a value that counts already takes no unit. A value counts from its last use. A request without the value
   * is treated as `onMissingKey` says; with `'share'` all such requests have one value. Not with `algorithm`,
   * `lease` or a `cost`. Defaults to none.
   */
  distinct: v.optional(oneKey as v.GenericSchema<KeySource<Context>, KeyPart>),
  /** The requests that the policy applies to. Defaults to every request. */
  match: v.optional(condition, {}),
  /**
   * Cost of a request in units: a whole number (0 charges nothing), a list of rules of which the first match counts, or an object with
   * `header`, `response`, `usage`, `body`, `graphql`, `max`, `rules` and `otherwise`. Defaults to 1.
   */
  cost: v.optional(cost, 1),
  /**
   * Keeps a part of the quota free for some requests: a list of rules `{ match, share }`, of which the first that matches a request
   * counts. The request passes only if it leaves this share of `limit` free (of `burst` for `'token-bucket'`), rounded up to whole units.
   * Requests that no rule matches may use the whole quota. Defaults to no rules.
   */
  reserve: v.optional(reserve, []),
  /** `'enforce'` refuses requests over the limit; `'shadow'` only counts and reports them. Defaults to `'enforce'`. */
  mode: v.optional(oneOf('enforce', 'shadow'), 'enforce'),
  /** Longest duration of a decision, less than 25 days. The shortest deadline of the policies that apply counts. Defaults to `deadline` of the configuration. */
  deadline: v.optional(timeout),
  /**
   * The fallback if Redis does not answer. `'local'`: the isolate counts by itself, up to `localShare` of the limit, continuing from the
   * last answer of Redis. `'deny'`: the answer is 503. `'allow'`: the request passes. If policies differ, `'deny'` takes precedence, then
   * `'local'`. Defaults to `'local'`, and with `'concurrency'` to `'allow'`, because an isolate cannot count the slots of other isolates.
   */
  onStoreError: v.optional(oneOf('allow', 'deny', 'local')),
  /** Part of `limit` and `burst` that one isolate may admit with `onStoreError: 'local'`: above 0, at most 1. Defaults to 1. */
  localShare: v.optional(
    v.custom<number>(
      (input) => typeof input === 'number' && input > 0 && input <= 1,
      'a number above 0 and at most 1',
    ),
    1,
  ),
  /**
   * The response to requests that the policy refuses: `{ status, body, headers }`, or a function of the decision and the context of key
   * functions that returns a `Response`. If several policies refuse a request, the one with the longest
   * wait answers. Defaults to `refusal` of the configuration.
   */
  refusal: v.optional(refusal as v.GenericSchema<RefusalInput<Context>, Refusal>),
  /** Codes of linter findings to ignore for this policy, one or a list (docs/reference/linter.md). Defaults to none. */
  accept,
  ...opaque<OwnedFields>(v.optional(v.unknown()), owners),
})
type PolicyFields = ReturnType<typeof policyFields<unknown>>

/** A policy: a named rule that limits requests. */
export interface PolicyOptions<Context = unknown>
  extends Input<ReturnType<typeof policyFields<Context>>> {}

/** The algorithms of a parsed policy without `distinct`. README.md, "Choose an algorithm", describes them. */
export type AlgorithmName = Exclude<Policy['algorithm'], 'distinct'>

/** A parsed policy, with defaults, and durations in milliseconds. */
export interface Policy extends ReturnType<typeof parsed> {
  deadlineMs: number
  /** The name of the plan whose size applies. Absent without a plan. */
  planName?: string
}

/**
 * The name of an algorithm's state, as a part of the tag. The state of a bucket is the number of missing tokens. Earlier versions stored
 * the available tokens; the different name keeps the two apart.
 */
const stateOf = (algorithm: string) => (algorithm === 'token-bucket' ? 'missing-tokens' : algorithm)

function parsed(options: Output<PolicyFields>) {
  const { window, deadline, timeZone = 'UTC', plan, ...rest } = options
  const { name, algorithm: written, align = 'first-request' } = rest
  const claim = typeof rest.limit === 'number' ? undefined : rest.limit
  const limit = claim ? claim.otherwise : (rest.limit as number)
  const calendar = isUnit(window) ? { unit: window, timeZone } : undefined
  const isSpaced = written === 'gcra'
  const counting = isSpaced ? 'token-bucket' : written
  // With another algorithm the feature reports a problem.
  const algorithm =
    rest.distinct && counting === 'sliding-window' ? ('distinct' as const) : counting
  return {
    ...rest,
    /** Marks the states of this policy in Redis. Depends on name, algorithm, window and align (with a calendar, the time zone). */
    tag: tagOf(name, stateOf(algorithm), window, calendar ? timeZone : align),
    algorithm,
    limit,
    /** The claim that sets the limit. Without a valid one, `limit` applies, or that of the plan. */
    claim,
    /** For a calendar window, the length of the longest period. */
    windowMs: isUnit(window) ? LONGEST_MS[window] : window,
    /** The periods of a calendar window; `undefined` for a duration. */
    calendar,
    burst: rest.burst ?? (isSpaced ? 1 : limit),
    /** True if the policy sets no burst, so that it equals the limit of a plan, a claim or an operator. */
    burstIsLimit: rest.burst === undefined && !isSpaced,
    /** The unit of the quota in responses; `undefined` for requests. */
    unit:
      algorithm === 'concurrency'
        ? ('concurrent-requests' as const)
        : countsBytes(rest)
          ? ('content-bytes' as const)
          : undefined,
    align,
    plan: plan && { ...plan, limits: rest.limits ?? {} },
    // An isolate cannot count the slots of other isolates.
    onStoreError: rest.onStoreError ?? (algorithm === 'concurrency' ? 'allow' : 'local'),
    usesBody: usesBody([
      rest.key,
      rest.onMissingKey,
      rest.distinct,
      plan,
      rest.match,
      rest.cost,
      rest.reserve,
    ]),
    /** If undefined, the deadline of the configuration applies. */
    deadlineMs: deadline,
    /** True if a charge depends on the response: on its status, its price, its body, or its end (slots). */
    settles:
      rest.countOnly !== undefined ||
      rest.cost.response !== undefined ||
      rest.cost.usage !== undefined ||
      algorithm === 'concurrency',
  }
}

export const policy = named<PolicyOptions>()(
  v.pipe(
    object(policyFields, (input, problem) => {
      checkQuota(input, problem)
      checkCalendar(input, problem)
      checkParameters(input, problem)
    }),
    v.transform(parsed),
  ),
)

const callerFields = () => ({
  /** The algorithm that counts calls. Defaults to `'sliding-window'`. */
  algorithm: v.optional(oneOf(...inWindows, ...buckets), 'sliding-window'),
  /** Calls of one caller in a window: a whole number, at least 1. Required. */
  limit: whole(1),
  /** The time window: a duration such as `'1m'`. Required. */
  window: duration,
  /** Capacity of the bucket in calls. Only for `'token-bucket'` (defaults to `limit`) and `'gcra'` (defaults to 1). */
  burst: v.optional(whole(1)),
})
export interface CallerOptions extends Input<ReturnType<typeof callerFields>>, Named {}

/** The limit on each caller of the decision API, parsed to a policy. */
export const callers = named<CallerOptions>()(
  v.pipe(
    object(callerFields, (input, problem) => checkQuota(input, problem)),
    v.transform((quota): PolicyOptions => ({ ...quota, name: 'api-callers', key: 'global' })),
    policy,
  ),
)
