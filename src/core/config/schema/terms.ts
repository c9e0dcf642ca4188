/** The fields of a limit that need no request, and their normal form. `limits()` loads them without the rest of the schema. */
import * as v from 'valibot'
import { Calendar, type CalendarUnit, isTimeZone } from '../../base/calendar.ts'
import { tagOf } from '../../base/fnv.ts'
import { hasOwnKey, largestQuota } from '../../base/units.ts'
import { type AddProblem, duration, either, type Output, oneOf, timeout, whole } from './shapes.ts'

const calendarUnits = ['day', 'week', 'month'] as const

const isUnit = (input: unknown): input is CalendarUnit =>
  calendarUnits.some((unit) => unit === input)

/** The longest calendar periods, including the extra hour of a daylight-saving change. */
const LONGEST_MS = { day: 25 * 3_600_000, week: 169 * 3_600_000, month: 745 * 3_600_000 }

const buckets = ['token-bucket', 'gcra'] as const

export const termFields = () => ({
  /**
   * The algorithm that counts. `'gcra'` is `'token-bucket'` with a `burst` that defaults to 1. Defaults to `'sliding-window'`.
   */
  algorithm: v.optional(
    oneOf('fixed-window', 'sliding-window', 'sliding-log', 'concurrency', ...buckets),
    'sliding-window',
  ),
  /**
   * The time window of the quota: a duration such as `'10s'`, `'1m'`, `'1h'` or `'1d'`, or whole milliseconds. With `'fixed-window'` also
   * a calendar `'day'`, `'week'` (from Monday) or `'month'`. With `'concurrency'` the lifetime of a slot that is not released. Required.
   */
  window: either(isUnit, duration, oneOf(...calendarUnits)),
  /** Time zone of a calendar `window`: an IANA name such as `'Europe/Berlin'`. Defaults to `'UTC'`. */
  timeZone: v.optional(v.custom<string>(isTimeZone, 'a time zone like "Europe/Berlin"')),
  /**
   * Capacity of the bucket in units: a whole number, at least 1. Only for `'token-bucket'` (defaults to `limit`) and `'gcra'`
   * (defaults to 1, which spaces requests evenly).
   */
  burst: v.optional(whole(1)),
  /** Start of a fixed window: `'first-request'`, or `'clock'` for multiples of `window` since the epoch. Not for other windows. Defaults to `'first-request'`. */
  align: v.optional(oneOf('first-request', 'clock')),
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
})

/** The fields that are valid, with the size of the quota. */
type WrittenTerms = Partial<
  Output<ReturnType<typeof termFields>> & { limit: number | { max: number }; distinct: unknown }
>

/** Checks the algorithm with the sizes that it counts. */
export function checkQuota(
  { algorithm, window, limit, burst, align, distinct }: WrittenTerms,
  problem: AddProblem,
) {
  if (burst !== undefined && algorithm && !buckets.some((name) => name === algorithm))
    problem(['burst'], `no value (${algorithm} has no burst)`)
  if (align !== undefined && algorithm && algorithm !== 'fixed-window')
    problem(['align'], 'no value (only fixed-window has align)')
  if (!algorithm || typeof window !== 'number') return // calendar windows are fixed windows
  const counting = distinct && algorithm === 'sliding-window' ? 'distinct' : algorithm
  const sizes: [string[], number | undefined][] = [
    typeof limit === 'object' ? [['limit', 'max'], limit.max] : [['limit'], limit],
    [['burst'], burst],
  ]
  for (const [path, size = 0] of sizes) {
    const expected = tooLarge(size, counting, window)
    if (expected) problem(path, expected)
  }
}

/** What a message expects instead of a limit or burst that its algorithm cannot count. */
export function tooLarge(size: number, algorithm: string, windowMs: number): string | undefined {
  const most = largestQuota(algorithm, windowMs)
  if (size <= most) return undefined
  if (!hasOwnKey(algorithm))
    return `at most ${most} with ${algorithm} and this window (for more write algorithm: 'fixed-window', or count larger units, such as cost: { usage: { 'usage.total_tokens': 0.01 } })`
  const other = algorithm === 'sliding-log' ? ' (sliding-window allows more)' : ''
  return `at most ${most} with ${algorithm}${other}`
}

export function checkCalendar(
  { algorithm, window, timeZone, align }: WrittenTerms,
  problem: AddProblem,
) {
  if (window === undefined) return
  if (!isUnit(window)) {
    if (timeZone !== undefined)
      problem(['timeZone'], 'no value (only the windows day, week and month have a time zone)')
    return
  }
  if (algorithm && algorithm !== 'fixed-window')
    problem(['window'], 'a duration (calendar windows require fixed-window)')
  if (align !== undefined)
    problem(['align'], 'no value (a calendar window opens when its period begins)')
}

/** The name of an algorithm's state, as a part of the tag. Earlier versions stored the available tokens of a bucket, and not the missing ones. */
const stateOf = (algorithm: string) => (algorithm === 'token-bucket' ? 'missing-tokens' : algorithm)

/** The normal form of these fields, with the size of the quota without a plan or a claim. */
export function normalTerms(
  options: Output<ReturnType<typeof termFields>>,
  name: string,
  limit: number,
  isDistinct = false,
) {
  const { window, timeZone = 'UTC', algorithm: written, align = 'first-request', burst } = options
  const calendar = isUnit(window) ? new Calendar(window, timeZone) : undefined
  const isSpaced = written === 'gcra'
  const counting = isSpaced ? 'token-bucket' : written
  // With another algorithm the feature reports a problem.
  const algorithm = isDistinct && counting === 'sliding-window' ? ('distinct' as const) : counting
  const holdsSlots = algorithm === 'concurrency'
  return {
    /** Marks the states of this policy in Redis. Depends on name, algorithm, window and align (with a calendar, the time zone). */
    tag: tagOf(name, stateOf(algorithm), window, calendar ? timeZone : align),
    algorithm,
    limit,
    /** For a calendar window, the length of the longest period. */
    windowMs: isUnit(window) ? LONGEST_MS[window] : window,
    /** The periods of a calendar window; `undefined` for a duration. */
    calendar,
    burst: burst ?? (isSpaced ? 1 : limit),
    /** True if the policy sets no burst, so that it equals the limit of a plan, a claim or an operator. */
    burstIsLimit: burst === undefined && !isSpaced,
    align,
    // An isolate cannot count the slots of other isolates.
    onStoreError: options.onStoreError ?? (holdsSlots ? 'allow' : 'local'),
    /** If undefined, the deadline of the configuration applies. */
    deadlineMs: options.deadline,
    /** The unit of the quota in responses; `undefined` for requests. */
    unit: holdsSlots ? ('concurrent-requests' as const) : undefined,
    /** True if a charge depends on the response: on its status, its price, its body, or its end (slots). */
    settles: holdsSlots,
  }
}
