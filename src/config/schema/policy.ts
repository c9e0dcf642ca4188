import * as v from 'valibot'
import { type CalendarUnit, isTimeZone } from '../../base/calendar.ts'
import { tagOf } from '../../base/tag.ts'
import { condition } from './condition.ts'
import { cost } from './cost.ts'
import {
  type Key,
  type KeyPart,
  key,
  type MissingKeyOptions,
  type OnMissingKey,
  onMissingKey,
} from './key.ts'
import { lease } from './lease.ts'
import { countOnly } from './outcomes.ts'
import { penalty } from './penalty.ts'
import { limits, type PlanOptions, type PlanSource, plan } from './plan.ts'
import {
  type AddProblem,
  accept,
  duration,
  either,
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

/** Of units and window: sums of three such products are exact in a double, so the Lua never rounds. A million a month fits. */
const MAX_PRODUCT = Math.floor(2 ** 53 / 3)

const inWindows = ['fixed-window', 'sliding-window', 'sliding-log'] as const
const buckets = ['token-bucket', 'gcra', 'leaky-bucket'] as const

const units = ['day', 'week', 'month'] as const
const isUnit = (input: unknown): input is CalendarUnit => units.some((unit) => unit === input)
/** Of a calendar's periods, with an hour to spare for a change of the clock. */
const LONGEST_MS = { day: 25 * 3_600_000, week: 169 * 3_600_000, month: 745 * 3_600_000 }

const policyFields = <Context>() => ({
  /** Up to 64 letters, digits, `_`, `.`, `-`; the `RateLimit` fields contain it. */
  name,
  /** Defaults to `'sliding-window'`. `'gcra'` and `'leaky-bucket'` are `'token-bucket'` with a `burst` that defaults to 1. */
  algorithm: v.optional(oneOf(...inWindows, 'concurrency', ...buckets), 'sliding-window'),
  /** Size of the quota in units; a request costs one unless `cost` says otherwise. At least 1; times `window` in ms at most 2^53 / 3 (a million in 31 days fits). */
  limit: whole(1),
  /**
   * The time window of the quota: `'10s'`, `'1m'`, `'1h'`, `'1d'`, or milliseconds; for a fixed window also a `'day'`, a `'week'` (from
   * Monday on) or a `'month'` of the calendar; for concurrency the life of a slot that is never released.
   */
  window: either(isUnit, duration, oneOf(...units)),
  /** The time zone of the calendar: an IANA name such as `'Europe/Berlin'`. Defaults to `'UTC'`. */
  timeZone: v.optional(v.custom<string>(isTimeZone, 'a time zone like "Europe/Berlin"')),
  /** Sizes of the quota by plan; `limit` is that of requests without one of these. */
  limits: v.optional(limits, {}),
  /** What tells the plan: a part as of a key, its value looked up in a table of the configuration if one is named. */
  plan: v.optional(plan as v.GenericSchema<PlanOptions<Context>, PlanSource>),
  /**
   * Which responses of the origin count: a status (`401`), a range (`'4xx'`, `'200-299'`), or several. A request is charged first, and
   * refunded if its response does not count. Defaults to all.
   */
  countOnly: v.optional(countOnly),
  /** What refusals lead to; or `'manual'`, bans that only operators set (docs/reference/decision-api.md). Defaults to nothing. */
  penalty: v.optional(penalty),
  /**
   * Lets an isolate take up to `max` units (2 to 10,000) of a busy quota in one call, and spend them without asking for at most `ttl`
   * (at most a minute): docs/reference/configuration.md, "Leases". Defaults to one call for each request.
   */
  lease: v.optional(lease),
  /** Room for a burst, in units: token-bucket (defaults to `limit`), gcra and leaky-bucket (default to 1, evenly spaced) only. */
  burst: v.optional(whole(1)),
  /** When a fixed window opens: with its first request (default), or at multiples of `window` since the epoch. */
  align: v.optional(oneOf('first-request', 'clock')),
  /** Whose quota: one part or several. Defaults to `'ip'`. */
  key: v.optional(key as v.GenericSchema<Key<Context>, KeyPart[]>, 'ip'),
  /**
   * How a request is treated that lacks a part of the key: `'share'` (default), one quota for all that lack it; `'skip'`, the policy
   * does not apply; `'refuse'`, 403; or another key to count it by, `{ key: 'ip' }`. A credential that is present but cannot be read
   * or verified is treated the same, except that `'skip'` counts it in one shared quota.
   */
  onMissingKey: v.optional(
    onMissingKey as v.GenericSchema<MissingKeyOptions<Context>, OnMissingKey>,
    'share',
  ),
  /** Which requests. Defaults to every request. */
  match: v.optional(condition, {}),
  /** The price of a request in units: a number, the first matching of some rules, or a header that only a trusted proxy may set. Defaults to 1; 0 charges nothing. */
  cost: v.optional(cost, 1),
  /** Defaults to `'enforce'`; `'shadow'` counts and reports, and never refuses. */
  mode: v.optional(oneOf('enforce', 'shadow'), 'enforce'),
  /**
   * When Redis is asked: `'before'` the origin (default), or `'parallel'`, while the origin answers, whose response goes to the client
   * only if the request passes. Only in the gateway, for GET, HEAD and OPTIONS without a body, if all policies that apply to the
   * request say so and are enforced; the origin then also sees the requests that are refused.
   */
  check: v.optional(oneOf('before', 'parallel'), 'before'),
  /** The longest to wait for Redis. Defaults to the configuration's; of the policies that apply to a request, the shortest counts. */
  deadline: v.optional(timeout),
  /**
   * The answer when Redis cannot decide: `'local'`, this isolate counts by itself, over `localShare` of the limit and going on from
   * Redis' last answer; `'deny'`, 503; `'allow'`, every request passes. If policies differ, `'deny'` wins, then `'local'`. Defaults to
   * `'local'`, with concurrency to `'allow'`: an isolate cannot count the slots of other isolates.
   */
  onStoreError: v.optional(oneOf('allow', 'deny', 'local')),
  /** With `'local'`: the part of limit and burst that one isolate may admit by itself, above 0 and at most 1. Defaults to 1. */
  localShare: v.optional(
    v.custom<number>(
      (input) => typeof input === 'number' && input > 0 && input <= 1,
      'a number above 0 and at most 1',
    ),
    1,
  ),
  /** Findings of `npm run check` that are intended (docs/reference/linter.md). */
  accept,
})
type PolicyFields = ReturnType<typeof policyFields<unknown>>
type Valid = Partial<Output<PolicyFields>>

/** A named rule. */
export interface PolicyOptions<Context = unknown>
  extends Input<ReturnType<typeof policyFields<Context>>> {}

/** The names of the algorithms, as README.md "Choose an algorithm" lists them. */
export type AlgorithmName = Policy['algorithm']

/** A parsed rule: defaults filled in, durations in milliseconds. */
export interface Policy extends ReturnType<typeof parsed> {
  deadlineMs: number
}

/** The name of an algorithm's state. A bucket once stored what it has; now it stores what is missing, which must not be read as that. */
const stateOf = (algorithm: string) => (algorithm === 'token-bucket' ? 'missing-tokens' : algorithm)

function parsed(options: Output<PolicyFields>) {
  const { window, deadline, timeZone = 'UTC', plan, limits, ...rest } = options
  const { name, algorithm: written, limit, align = 'first-request', penalty } = rest
  const calendar = isUnit(window) ? { unit: window, timeZone } : undefined
  const isSpaced = written === 'gcra' || written === 'leaky-bucket'
  const algorithm = isSpaced ? 'token-bucket' : written
  return {
    ...rest,
    /** Marks this policy's states in Redis; changes with name, algorithm, window and align. */
    tag: tagOf(name, stateOf(algorithm), window, calendar ? timeZone : align),
    algorithm,
    /** Of a calendar window the longest there is. */
    windowMs: isUnit(window) ? LONGEST_MS[window] : window,
    /** The periods that the window follows instead. */
    calendar,
    burst: rest.burst ?? (isSpaced ? 1 : limit),
    align,
    /** Sizes of the quota by plan, and what tells the plan; `burstIsLimit` if the burst was left out, and follows the limit. */
    plan: plan && {
      ...plan,
      limits,
      burstIsLimit: rest.burst === undefined && !isSpaced,
    },
    penalty: penalty && { ...penalty, tag: tagOf(name, 'penalty') },
    // An isolate cannot count the slots of other isolates.
    onStoreError: rest.onStoreError ?? (algorithm === 'concurrency' ? 'allow' : 'local'),
    /** The configuration's if the policy has none. */
    deadlineMs: deadline,
  }
}

export const policy = named<PolicyOptions>()(
  v.pipe(
    object(policyFields(), (input, problem, all) => {
      checkQuota(input, problem)
      checkCalendar(input, problem)
      checkPlan(input, problem, all)
      checkConcurrency(input, problem)
      checkLease(input, problem)
      checkParameters(input, problem)
    }),
    v.transform(parsed),
  ),
)

const { limit, burst } = policyFields()

const callerFields = {
  /** Defaults to `'sliding-window'`. */
  algorithm: v.optional(oneOf(...inWindows, ...buckets), 'sliding-window'),
  /** Calls in a window. */
  limit,
  window: duration,
  /** Room for a burst, in calls: token-bucket (defaults to `limit`), gcra and leaky-bucket (default to 1, evenly spaced) only. */
  burst,
}
interface CallerOptions extends Input<typeof callerFields>, Named {}

/** The policy on each caller of the decision API. */
export const callers = named<CallerOptions>()(
  v.pipe(
    object(callerFields, (input, problem) => checkQuota(input, problem)),
    v.transform((quota) => v.parse(policy, { ...quota, name: 'api-callers', key: 'global' })),
  ),
)

function checkQuota(
  { algorithm, window, limit, burst, align, limits }: Valid,
  problem: AddProblem,
) {
  if (burst !== undefined && algorithm && !buckets.some((name) => name === algorithm)) {
    problem(['burst'], `nothing (${algorithm} has no burst)`)
  }
  if (align !== undefined && algorithm && algorithm !== 'fixed-window') {
    problem(['align'], 'nothing (only fixed-window has an align)')
  }
  const windowMs = isUnit(window) ? LONGEST_MS[window] : window
  const sizes: [string[], number | undefined][] = [
    [['limit'], limit],
    [['burst'], burst],
    ...Object.entries(limits ?? {}).map(([name, size]): [string[], number] => [
      ['limits', name],
      size,
    ]),
  ]
  for (const [path, size = 0] of sizes) {
    // A log keeps an entry of 40 to 120 bytes for every unit, and so do slots.
    if (algorithm === 'sliding-log' && size > 10_000) {
      problem(path, 'at most 10000 with sliding-log (sliding-window has no such bound)')
    }
    if (algorithm === 'concurrency' && size > 10_000)
      problem(path, 'at most 10000 with concurrency')
    if (windowMs && size * windowMs > MAX_PRODUCT) {
      problem(path, `at most ${Math.floor(MAX_PRODUCT / windowMs)} with this window`)
    }
  }
}

function checkCalendar({ algorithm, window, timeZone, align }: Valid, problem: AddProblem) {
  if (window === undefined) return
  if (!isUnit(window)) {
    if (timeZone !== undefined)
      problem(['timeZone'], 'nothing (only a window of a day, week or month has one)')
    return
  }
  if (algorithm && algorithm !== 'fixed-window')
    problem(['window'], 'a duration (only fixed-window has calendar windows)')
  if (align !== undefined) problem(['align'], 'nothing (the calendar says when a window opens)')
}

function checkPlan({ limits, plan }: Valid, problem: AddProblem, all: Record<string, unknown>) {
  if (!limits) return
  const some = Object.keys(limits).length > 0
  if (plan && !some) problem(['limits'], 'a limit for each plan')
  if (all.plan === undefined && some) {
    problem(['plan'], 'what tells the plan of a request, like "header:x-plan"')
  }
}

function checkConcurrency(input: Valid, problem: AddProblem) {
  if (input.algorithm !== 'concurrency') return
  if (input.countOnly) problem(['countOnly'], 'nothing (a slot ends with its request)')
  if (input.cost?.response) {
    problem(['cost', 'response'], 'nothing (a slot ends with its request)')
  }
  if (input.check === 'parallel') {
    problem(['check'], 'before (the origin is asked once there is a slot)')
  }
  if (input.onStoreError === 'local') {
    problem(['onStoreError'], 'allow or deny (an isolate cannot count what is in flight elsewhere)')
  }
}

/** Units that are spent without a call cannot keep every promise. */
function checkLease({ lease, algorithm, countOnly, penalty, cost }: Valid, problem: AddProblem) {
  if (!lease) return
  const why =
    algorithm === 'sliding-log'
      ? 'sliding-log promises that no window has more than the limit'
      : algorithm === 'concurrency'
        ? 'each slot is held by a request'
        : countOnly || cost?.response
          ? 'what it costs is known after the answer'
          : penalty && 'a ban would not be seen'
  if (why) problem(['lease'], `nothing (${why})`)
}

/** `path:id` is a parameter of the policy's own pattern. */
function checkParameters({ key, onMissingKey, plan, match }: Valid, problem: AddProblem) {
  if (!match) return
  const check = (part: KeyPart, ...at: (string | number)[]) => {
    if (part.source !== 'path-parameter') return
    const parameter = `:${part.name}`
    if (!match.path?.some((path) => path.split('/').includes(parameter))) {
      problem(at, `a match.path with the parameter ${parameter}`)
    }
  }
  key?.forEach((part, index) => void check(part, 'key', index))
  if (typeof onMissingKey === 'object') {
    onMissingKey.key.forEach((part, index) => void check(part, 'onMissingKey', 'key', index))
  }
  if (plan) check(plan.key, 'plan')
}
