import * as v from 'valibot'
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
import { checkCalendar, checkParameters, checkQuota } from './policy-checks.ts'
import { countsBytes, usesBody } from './reads.ts'
import { type Refusal, type RefusalInput, refusal } from './refusal.ts'
import { reserve } from './reserve.ts'
import { accept, type Input, name, named, type Output, object } from './shapes.ts'
import { normalTerms, termFields } from './terms.ts'

const policyFields = <Context>() => ({
  /** Unique name of the policy: up to 64 letters, digits, `_`, `.` or `-`, starting with a letter or digit. It appears in the `RateLimit` fields. Required. */
  name,
  /**
   * Size of the quota in units. A request costs one unit unless `cost` says otherwise. A whole number, at least 1; at most 10,000 with
   * `'sliding-log'` and `'concurrency'`. At most 2^53 - 1 with `'fixed-window'`; otherwise `limit` × `window` in ms must not exceed
   * 2^53 / 3 (a million in 31 days fits). Or `{ claim, max, otherwise }`: the number in a claim of the verified token (`jwt()`). Required.
   */
  limit,
  ...termFields(),
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

function parsed(options: Output<PolicyFields>) {
  const { window, deadline, timeZone, plan, ...rest } = options
  const claim = typeof rest.limit === 'number' ? undefined : rest.limit
  const limit = claim ? claim.otherwise : (rest.limit as number)
  const terms = normalTerms(options, rest.name, limit, rest.distinct !== undefined)
  return {
    ...rest,
    ...terms,
    /** The claim that sets the limit. Without a valid one, `limit` applies, or that of the plan. */
    claim,
    unit: terms.unit ?? (countsBytes(rest) ? ('content-bytes' as const) : undefined),
    plan: plan && { ...plan, limits: rest.limits ?? {} },
    usesBody: usesBody([
      rest.key,
      rest.onMissingKey,
      rest.distinct,
      plan,
      rest.match,
      rest.cost,
      rest.reserve,
    ]),
    settles:
      terms.settles ||
      rest.countOnly !== undefined ||
      rest.cost.response !== undefined ||
      rest.cost.usage !== undefined,
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
