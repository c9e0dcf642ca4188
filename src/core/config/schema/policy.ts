import * as v from 'valibot'
import { isObject } from '../../base/json.ts'
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
  type PlanOptions,
  type PlanSource,
  plan,
} from './key.ts'
import { countsBytes, usesBody } from './reads.ts'
import { type Refusal, type RefusalInput, refusal } from './refusal.ts'
import {
  type AddProblem,
  accept,
  either,
  type Input,
  list,
  type Named,
  name,
  named,
  type Output,
  object,
  pattern,
  units,
} from './shapes.ts'
import { checkCalendar, checkQuota, normalTerms, termFields } from './terms.ts'

const claimFields = () => ({
  /** Name of the claim with the limit: a whole number of at least 1. Required. */
  claim: pattern('the name of a claim', /^\S+$/),
  /** The largest limit: a claim with a higher number has this limit. Required. */
  max: units,
  /** The limit without a valid claim in a verified token, at most `max`. A plan of the request comes first. Required. */
  otherwise: units,
})

/** A limit that a claim of the request's verified token sets. */
export interface ClaimLimit extends Input<ReturnType<typeof claimFields>>, Named {}

const byClaim = named<ClaimLimit>()(
  object(claimFields, ({ max, otherwise }, problem) => {
    if (max && otherwise && otherwise > max) problem(['otherwise'], `at most max, ${max}`)
  }),
)

const limit = either(isObject, units, byClaim)

/** A status such as `401`, a class such as `'4xx'`, or a range such as `'400-403'`. */
export type StatusRange = number | `${number}xx` | `${number}-${number}`

/** A range of statuses, both ends included. */
function statuses(input: unknown): [low: number, high: number] | undefined {
  if (typeof input !== 'string' && typeof input !== 'number') return undefined
  const text = String(input).toLowerCase()
  if (!/^([1-5]\d\d(-[1-5]\d\d)?|[1-5]xx)$/.test(text)) return undefined
  if (text.endsWith('xx')) return [Number(text[0]) * 100, Number(text[0]) * 100 + 99]
  const [low, high] = text.split('-').map(Number) as [number, number?]
  return high === undefined || low <= high ? [low, high ?? low] : undefined
}

const countOnly = list(
  v.pipe(
    v.custom<StatusRange>(
      (input) => statuses(input) !== undefined,
      'a status like 401, "4xx" or "400-403"',
    ),
    v.transform((input) => statuses(input)!),
  ),
)

const reserveFields = () => ({
  /** The requests that the rule applies to. Defaults to every request. */
  match: v.optional(condition, {}),
  /** The part of the quota that such a request must leave free: a number from 0, below 1. Required. */
  share: v.custom<number>(
    (input) => typeof input === 'number' && input >= 0 && input < 1,
    'a number from 0, below 1',
  ),
})

/** A part of the quota that some requests must leave free for others. */
export interface ReserveRule extends Input<ReturnType<typeof reserveFields>>, Named {}

const reserve = v.array(
  named<ReserveRule>()(
    v.pipe(
      object(reserveFields),
      v.transform(({ match, share }) => ({ condition: match, share })),
    ),
  ),
  'a list of rules',
)

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
   * `window`, and a value that counts already, from its last use on, takes no unit. A request without the value is treated as `onMissingKey`
   * says; with `'share'` each such request has another value. Not with `algorithm`, `lease` or a `cost`. Defaults to none.
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
   * Keeps a part of the quota free: a list of rules `{ match, share }`, of which the first that matches a request counts. The request passes only
   * if it leaves this share of `limit` free (of `burst` for `'token-bucket'`), rounded up to whole units. Defaults to no rules.
   */
  reserve: v.optional(reserve, []),
  /**
   * The response to requests that the policy refuses: `{ status, body, headers }`, or a function of the decision and the context of key
   * functions. If several policies refuse, that with the longest wait answers. Defaults to `refusal` of the configuration.
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
  const { key, onMissingKey, distinct, match, cost, reserve } = rest
  const claim = typeof rest.limit === 'number' ? undefined : rest.limit
  const limit = claim ? claim.otherwise : (rest.limit as number)
  const terms = normalTerms(options, rest.name, limit, distinct !== undefined)
  return {
    ...rest,
    ...terms,
    /** The claim that sets the limit. Without a valid one, `limit` applies, or that of the plan. */
    claim,
    unit: terms.unit ?? (countsBytes(rest) ? ('content-bytes' as const) : undefined),
    plan: plan && { ...plan, limits: rest.limits ?? {} },
    usesBody: usesBody([key, onMissingKey, distinct, plan, match, cost, reserve]),
    settles:
      terms.settles || [rest.countOnly, cost.response, cost.usage].some((one) => one !== undefined),
  }
}

/** Reports a key part `path:id` if no path of `match` has the parameter `:id`. */
function checkParameters(
  { key, onMissingKey, plan, match }: Partial<Output<PolicyFields>>,
  problem: AddProblem,
) {
  if (!match) return
  const check = (part: KeyPart, ...at: (string | number)[]) => {
    if (part.source !== 'path-parameter') return
    const parameter = `:${part.name}`
    if (!match.path?.some((path) => path.split('/').includes(parameter)))
      problem(at, `a match.path with the parameter ${parameter}`)
  }
  key?.forEach((part, index) => void check(part, 'key', index))
  if (typeof onMissingKey === 'object')
    onMissingKey.key.forEach((part, index) => void check(part, 'onMissingKey', 'key', index))
  if (plan) check(plan.key, 'plan')
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
